/* The program: `paceline COMMAND ...`. Finds the command, reads its settings, runs it, exits with its code. */
#include "base/file.h"
#include "base/heap.h"
#include "cli/cmd.h"
#include "cli/fatal.h"
#include "cli/version.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct built_command {
    const char *name;
    cmd_fn *run;
} built_command;

/* commands.inc is made by the build from the cmd_*.c files that are there. */
static const built_command built[] = {
#define PL_COMMAND(name) {#name, cmd_##name},
#include "cli/commands.inc"
#undef PL_COMMAND
    {0},
};

enum { TEXT_CAP = 1 << 20 };

/* By the first word of the name: `bench concurrent` is in cmd_bench.c. */
static cmd_fn *find_built(const char *name)
{
    size_t n = strcspn(name, " ");
    for (const built_command *b = built; b->name; b++)
        if (strlen(b->name) == n && memcmp(b->name, name, n) == 0)
            return b->run;
    return NULL;
}

/* The command that the first of n words name, or the first two; *used is how many. NULL when there is none. */
static const pl_command *find_command(int n, char *const *word, int *used)
{
    char both[64];
    *used = 2;
    if (n > 1 && snprintf(both, sizeof both, "%s %s", word[0], word[1]) < (int)sizeof both) {
        const pl_command *command = pl_command_find(both);
        if (command)
            return command;
    }
    *used = 1;
    return pl_command_find(word[0]);
}

static int print_buf(pl_buf *text, pl_status status, pl_error *err)
{
    if (status == PL_OK)
        status = cmd_print(text->data, text->len, err);
    pl_buf_free(text);
    if (status == PL_OK)
        return CMD_OK;
    fprintf(stderr, "paceline: %s\n", err->message);
    return CMD_FAILED;
}

static int print_version(void)
{
    pl_error err;
    pl_buf text;
    pl_buf_init(&text, TEXT_CAP, "version");
    return print_buf(&text, pl_buf_adds(&text, "paceline " PACELINE_VERSION "\n", &err), &err);
}

static pl_status overview(pl_buf *out, pl_error *err)
{
    PL_TRY(pl_buf_adds(
        out, "paceline: exact inference for DeepSeek-V4.1 checkpoints\n\nusage: paceline COMMAND [SETTINGS]\n\n", err));
    for (const pl_command *c = pl_command_table; c->name; c++)
        if (find_built(c->name))
            PL_TRY(pl_buf_addf(out, err, "  %-16s %s\n", c->name, c->summary));
    return pl_buf_adds(
        out,
        "\n`paceline help COMMAND` tells a command's settings, `paceline help environment` the variables\n"
        "they may come from; `paceline version` (or --version) the version.\n",
        err);
}

/* `paceline help`, `paceline help environment`, `paceline help COMMAND`; n words follow "help". */
static int print_help(int n, char *const *word)
{
    const char *topic = n > 0 ? word[0] : NULL;
    int used = 0;
    pl_error err;
    pl_buf text;
    pl_buf_init(&text, TEXT_CAP, "help");
    if (!topic)
        return print_buf(&text, overview(&text, &err), &err);
    if (strcmp(topic, "environment") == 0)
        return print_buf(&text, pl_settings_doc(&text, &err), &err);
    const pl_command *command = find_command(n, word, &used);
    if (command && find_built(command->name))
        return print_buf(&text, pl_settings_help(command, &text, &err), &err);
    fprintf(stderr, "paceline: no command \"%s\"; `paceline help` lists them\n", topic);
    return CMD_USAGE;
}

/* The program ends as the signal says, and leaves nothing half-written behind. */
static void on_end(int signal_number)
{
    pl_file_unlink_temps();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void set_signals(void)
{
    /* A reader that goes away and a file at its size limit are errors of write(), reported like any other. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signal(ends[i], on_end) == SIG_IGN) /* as nohup asks for */
            signal(ends[i], SIG_IGN);
}

/* A standard stream that was closed would be the number of the next file opened, and what is printed land in it. The
 * wrong way round, so that using it stays an error. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* takes the lowest free number: fd */
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    set_signals();
    cli_catch_fatal();
    pl_heap_fix();
    if (argc < 2) {
        print_help(0, NULL);
        return CMD_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0)
        return print_version();
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(argc - 2, argv + 2);
    int used;
    const pl_command *command = find_command(argc - 1, argv + 1, &used);
    cmd_fn *run = find_built(name);
    if (!command || !run) {
        fprintf(stderr, "paceline: no command \"%s\"; `paceline help` lists them\n", name);
        return CMD_USAGE;
    }
    pl_error err;
    pl_settings settings;
    if (pl_settings_parse(&settings, command, argc - 1 - used, argv + 1 + used, environ, &err) != PL_OK) {
        fprintf(stderr, "paceline %s: %s\n", command->name, err.message);
        return CMD_USAGE;
    }
    if (settings.version)
        return print_version();
    if (settings.help)
        return print_help(used, argv + 1);
    return run(&settings);
}
