#include "cli/fatal.h"

#include "base/file.h"
#include "base/mapped.h"
#include "cli/cmd.h"

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The handler of SIGBUS, which calls only what a signal handler may: no printf, no memory. */
enum { LINE = 8192 }; /* a path's length and the words around it */

static char *add_text(char *at, const char *end, const char *text)
{
    while (*text && at < end)
        *at++ = *text++;
    return at;
}

static char *add_number(char *at, const char *end, unsigned long long n)
{
    char digits[24], *p = digits + sizeof digits - 1;
    *p = '\0';
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    return add_text(at, end, p);
}

static void tell(const char *name, size_t size)
{
    static char line[LINE];
    const char *end = line + sizeof line - 1;
    struct stat st;
    char *at = add_text(line, end, "paceline: ");
    at = add_text(at, end, name);
    at = add_text(at, end, ": expected the ");
    at = add_number(at, end, size);
    at = add_text(at, end, " bytes that were there when it was opened, found ");
    if (stat(name, &st) != 0)
        at = add_text(at, end, "no such file");
    else if (st.st_size < 0 || (size_t)st.st_size >= size)
        at = add_text(at, end, "a part that cannot be read");
    else
        at = add_text(add_number(at, end, (unsigned long long)st.st_size), end, ": the file was cut");
    at = add_text(at, end, "\n");
    for (const char *p = line; p < at;) {
        ssize_t n = write(STDERR_FILENO, p, (size_t)(at - p));
        if (n <= 0)
            break;
        p += n;
    }
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    size_t size = 0;
    /* Only a fault that the kernel reports for an address; anything else ends the program as it would have. */
    const char *name =
        info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR ? pl_mapped_name(info->si_addr, &size) : NULL;
    if (!name) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    static atomic_flag told = ATOMIC_FLAG_INIT; /* threads fault together: one line is enough */
    if (!atomic_flag_test_and_set(&told))
        tell(name, size);
    else
        pause(); /* the one that tells ends the program */
    pl_file_unlink_temps();
    _exit(CMD_FAILED);
}

/* jansson 2.14 does not live through a failed allocation: what its lexer could not keep is dropped, which then looks
 * like a mistake in the text, or is read past its end. So the program ends right there and says why. */
static void *json_memory(size_t n)
{
    void *p = malloc(n);
    if (p)
        return p;
    pl_file_unlink_temps();
    fprintf(stderr, "paceline: no memory for %zu bytes of JSON\n", n);
    _exit(CMD_FAILED);
}

void cli_catch_fatal(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    json_set_alloc_funcs(json_memory, free);
}
