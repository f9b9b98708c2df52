/* See server.h. */
#include "bench/server.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_READ = 65536, TAIL = 200, POLL_MS = 50, ASK_S = 5 };

extern char **environ;
static volatile sig_atomic_t running; /* the group that runs, for a signal's handler */

void pl_bench_server_kill_all(void)
{
    if (running > 0)
        (void)kill(-(pid_t)running, SIGTERM);
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = POLL_MS * 1000000L};
    (void)nanosleep(&t, NULL);
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* A port that was free a moment ago; 0 without. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd < 0)
        return 0;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0)
        port = ntohs(at.sin_port);
    close(fd);
    return port;
}

/* The command with every {port} replaced; *port stays 0 when there is none. */
static pl_status fill_in(const char *command, char out[PL_BENCH_COMMAND_MAX], int *port, pl_error *err)
{
    size_t n = 0;
    for (const char *at = command; *at;) {
        bool hole = strncmp(at, "{port}", 6) == 0;
        char text[16] = {*at};
        if (hole && *port == 0 && (*port = free_port()) == 0)
            return pl_fail(err, PL_EIO, "no free port: %s", strerror(errno));
        if (hole)
            (void)snprintf(text, sizeof text, "%d", *port);
        size_t len = strlen(text);
        if (n + len >= PL_BENCH_COMMAND_MAX)
            return pl_fail(err, PL_EINVAL, "the server's command has more than %d bytes", PL_BENCH_COMMAND_MAX);
        memcpy(out + n, text, len);
        n += len;
        at += hole ? 6 : 1;
    }
    out[n] = '\0';
    return PL_OK;
}

static int open_log(void)
{
    const char *dir = getenv("TMPDIR");
    char path[512];
    (void)snprintf(path, sizeof path, "%.400s/paceline-bench-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC | O_APPEND);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

static int spawn(pl_bench_server *s, char *command)
{
    char *argv[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, ours;
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE); /* ignored here, which a child would inherit */
    sigaddset(&ours, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, s->log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, s->log, STDERR_FILENO);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigdefault(&attr, &ours);
    posix_spawnattr_setsigmask(&attr, &none);
    int wrong = posix_spawn(&s->group, "/bin/sh", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (wrong)
        s->group = 0;
    running = s->group;
    return wrong;
}

bool pl_bench_server_announced(const char *text, size_t n, char url[300])
{
    static const char words[] = "listening on ";
    size_t len = sizeof words - 1;
    for (size_t at = 0; at + len < n; at++) {
        if (memcmp(text + at, words, len) != 0 || (at && text[at - 1] != '\n'))
            continue;
        size_t from = at + len, to = from;
        while (to < n && text[to] > ' ' && text[to] <= '~')
            to++;
        if (to == n || to - from >= 300 || to - from < 8 || memcmp(text + from, "http://", 7) != 0)
            continue; /* a line that is still being written is read again */
        memcpy(url, text + from, to - from);
        url[to - from] = '\0';
        return true;
    }
    return false;
}

static bool find_address(pl_bench_server *s)
{
    char *text = malloc(LOG_READ), url[300];
    pl_error ignored;
    ssize_t n = text ? pread(s->log, text, LOG_READ, 0) : 0;
    bool found =
        n > 0 && pl_bench_server_announced(text, (size_t)n, url) && pl_bench_url_read(&s->url, url, &ignored) == PL_OK;
    free(text);
    return found;
}

/* ---- being ready ------------------------------------------------------------------------------------------------ */

pl_status pl_bench_model_name(const pl_bench_url *url, int64_t limit_ns, char name[PL_BENCH_MODEL_MAX], pl_error *err)
{
    int status;
    json_t *body;
    PL_TRY(pl_bench_client_get(url, "/models", limit_ns, &status, &body, err));
    const char *id = json_string_value(json_object_get(json_array_get(json_object_get(body, "data"), 0), "id"));
    pl_status result = PL_OK;
    if (status != 200)
        result = pl_fail(err, PL_EIO, "GET %s/models: HTTP %d", url->path, status);
    else if (!id || strlen(id) >= PL_BENCH_MODEL_MAX)
        result = pl_fail(err, PL_EFORMAT, "GET %s/models lists no model", url->path);
    else
        (void)snprintf(name, PL_BENCH_MODEL_MAX, "%s", id);
    json_decref(body);
    return result;
}

static bool is_ready(const pl_bench_url *url)
{
    char name[PL_BENCH_MODEL_MAX];
    int status;
    json_t *body;
    pl_error ignored;
    (void)pl_bench_client_get(url, "//health", (int64_t)ASK_S * 1000000000, &status, &body, &ignored);
    json_decref(body);
    return status && status != 503 && pl_bench_model_name(url, (int64_t)ASK_S * 1000000000, name, &ignored) == PL_OK;
}

/* The end of the server's output on one line, for a message. */
static void tail(const pl_bench_server *s, char text[TAIL + 1])
{
    off_t size = lseek(s->log, 0, SEEK_END);
    ssize_t n = pread(s->log, text, TAIL, size > TAIL ? size - TAIL : 0);
    text[n > 0 ? n : 0] = '\0';
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = *c == '\n' ? '|' : '?';
}

static bool has_ended(pl_bench_server *s)
{
    int status;
    pid_t got = s->group ? waitpid(s->group, &status, WNOHANG) : 0;
    /* Where SIGCHLD is ignored, which is inherited, the system takes the child away itself. */
    if (s->group && got != s->group && !(got < 0 && errno == ECHILD))
        return false;
    if (s->group) {
        (void)kill(-s->group, SIGKILL); /* what its leader left behind */
        s->group = 0;
        running = 0;
    }
    return true;
}

static bool end_group(pl_bench_server *s, double grace_s)
{
    bool was_running = s->group && !has_ended(s);
    if (was_running) {
        int64_t until = pl_now_ns() + (int64_t)(grace_s * 1e9);
        (void)kill(-s->group, SIGTERM);
        while (!has_ended(s)) {
            if (pl_now_ns() > until)
                (void)kill(-s->group, SIGKILL);
            nap();
        }
    }
    return was_running;
}

static pl_status not_ready(pl_bench_server *s, const char *what, pl_error *err)
{
    char text[TAIL + 1];
    (void)end_group(s, 1);
    tail(s, text);
    close(s->log);
    s->log = -1;
    return pl_fail(err, PL_EIO, "the server %s; its output ends: %s", what, *text ? text : "(nothing)");
}

pl_status pl_bench_server_start(pl_bench_server *s, const char *command, const char *key, double ready_s, pl_error *err)
{
    char filled[PL_BENCH_COMMAND_MAX], url[64];
    int port = 0;
    *s = (pl_bench_server){.log = -1};
    PL_TRY(fill_in(command, filled, &port, err));
    s->log = open_log();
    if (s->log < 0)
        return pl_fail(err, PL_EIO, "no temporary file for the server's output: %s", strerror(errno));
    int wrong = spawn(s, filled);
    if (wrong) {
        close(s->log);
        s->log = -1;
        return pl_fail(err, PL_EIO, "/bin/sh did not start: %s", strerror(wrong));
    }
    bool known = port != 0;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    if (known)
        PL_TRY(pl_bench_url_read(&s->url, url, err));
    int64_t until = pl_now_ns() + (int64_t)(ready_s * 1e9);
    for (;;) {
        if (has_ended(s))
            return not_ready(s, "ended before it was ready", err);
        known = known || find_address(s);
        s->url.key = key;
        if (known && is_ready(&s->url))
            return PL_OK;
        if (pl_now_ns() > until)
            return not_ready(s, known ? "was not ready in time" : "did not say where it listens in time", err);
        nap();
    }
}

bool pl_bench_server_stop(pl_bench_server *s, double grace_s)
{
    bool was_running = end_group(s, grace_s);
    if (s->log >= 0)
        close(s->log);
    s->log = -1;
    return was_running;
}
