#include "base/log.h"

#include "base/printable.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int level_now = PL_LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long dropped; /* lines since the last one that was written; guarded by lock */

void pl_log_set_level(pl_log_level level)
{
    atomic_store(&level_now, level);
}

/* A pipe that nobody reads is full after 64 KiB. A line is then lost rather than a server held up: a line is shorter
 * than what a pipe that is ready takes without waiting (PIPE_BUF). */
static bool ready(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) != 0;
}

static void put(const char *line, int len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, line, (size_t)len);
        if (n <= 0)
            return; /* nowhere left to say so */
        line += n;
        len -= (int)n;
    }
}

void pl_log(pl_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load(&level_now))
        return;
    char line[1024], shown[sizeof line], whole[sizeof line + 64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pl_printable(shown, sizeof shown, line, strlen(line)); /* names of clients' making stay on their line */
    int len = snprintf(whole, sizeof whole, "paceline: %s%s\n", names[level], shown);
    pthread_mutex_lock(&lock); /* lines stay whole */
    if (!ready()) {
        dropped++;
    } else {
        if (dropped) {
            char told[96];
            put(told, snprintf(told, sizeof told,
                               "paceline: warning: %lu lines before this one were lost: "
                               "standard error was not read\n",
                               dropped));
            dropped = 0;
        }
        put(whole, len);
    }
    pthread_mutex_unlock(&lock);
}
