/* paceline serve: load a model and answer over HTTP until told to stop.
 *
 * The main thread only waits for signals. Loading has a thread of its own, so that a slow load can be broken off and
 * /health answers meanwhile; it and the server report back by SIGUSR1. */
#include "cli/cmd.h"

#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/thread.h"
#include "server/server.h"
#include "text/chat.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 50, CANCEL_MS = 3000 };

typedef struct loader {
    pl_host_settings settings;
    pthread_t thread;
    pthread_mutex_t lock;
    /* guarded by lock */
    pl_host *host;
    pl_status status;
    bool done, model_failed;
    pl_error err;
} loader;

/* The same words as in a request. */
static pl_status read_effort(const char *text, int *effort, pl_error *err)
{
    static const struct {
        const char *word;
        int effort;
    } words[] = {{"low", PL_CHAT_EFFORT_LOW}, {"high", PL_CHAT_EFFORT_HIGH}, {"max", PL_CHAT_EFFORT_MAX}};
    int64_t number;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i].word) == 0) {
            *effort = words[i].effort;
            return PL_OK;
        }
    if (!pl_parse_i64(text, 1, 100, &number))
        return pl_fail_param(err, PL_EINVAL, "effort", "--effort: expected low, high, max or 1 to 100, found \"%s\"",
                             text);
    *effort = (int)number;
    return PL_OK;
}

static void say_real(const pl_settings *s, pl_setting_id id, unsigned bit, float *to, pl_sampling_part *part)
{
    if (!pl_set_given(s, id))
        return;
    *to = (float)pl_set_real(s, id);
    part->has |= bit;
}

static pl_status read_flags(const pl_settings *s, pl_defaults *flags, pl_error *err)
{
    pl_defaults_unset(flags);
    pl_sampling_part *part = &flags->sampling;
    say_real(s, PL_SET_TEMPERATURE, PL_HAS_TEMPERATURE, &part->value.temperature, part);
    say_real(s, PL_SET_TOP_P, PL_HAS_TOP_P, &part->value.top_p, part);
    say_real(s, PL_SET_MIN_P, PL_HAS_MIN_P, &part->value.min_p, part);
    if (pl_set_given(s, PL_SET_TOP_K)) {
        int64_t k = pl_set_int(s, PL_SET_TOP_K);
        part->value.top_k = k < 0 ? 0 : (int)k;
        part->has |= PL_HAS_TOP_K;
    }
    flags->max_tokens = pl_set_int(s, PL_SET_MAX_TOKENS);
    if (pl_set_given(s, PL_SET_THINKING))
        flags->thinking = pl_set_on(s, PL_SET_THINKING);
    return read_effort(pl_set_text(s, PL_SET_EFFORT), &flags->effort, err);
}

static void *load(void *arg)
{
    loader *l = arg;
    pl_host *host;
    pl_error err = {0};
    pl_status status = pl_host_open(&host, &l->settings, &err);
    pthread_mutex_lock(&l->lock);
    l->host = host;
    l->status = status;
    l->err = err;
    l->done = true;
    pthread_mutex_unlock(&l->lock);
    kill(getpid(), SIGUSR1);
    return NULL;
}

/* On the network thread. */
static void on_model_failed(void *arg, const pl_error *err)
{
    loader *l = arg;
    pthread_mutex_lock(&l->lock);
    l->model_failed = true;
    l->err = *err;
    pthread_mutex_unlock(&l->lock);
    kill(getpid(), SIGUSR1);
}

static void report_ready(pl_host *host, const char *name)
{
    pl_log(PL_LOG_INFO, "%s is ready after %.2f s: %s, %d threads, context %d, %.1f MiB beside the mapped weights",
           name, pl_host_load_seconds(host), pl_host_backend(host), pl_host_threads(host), pl_host_context(host),
           (double)pl_host_resident(host) / (1 << 20));
}

/* Wait for signals until there is a reason to stop: a signal (CMD_OK), or a failure, told on standard error. */
static int wait_for_end(const pl_settings *settings, loader *l, pl_server *server, const char *name,
                        const sigset_t *set)
{
    bool ready = false;
    for (;;) {
        int sig = 0;
        if (sigwait(set, &sig) != 0 || sig != SIGUSR1)
            return CMD_OK;
        pthread_mutex_lock(&l->lock);
        pl_error err = l->err;
        bool failed = (l->done && l->status != PL_OK) || l->model_failed;
        pl_host *host = l->done ? l->host : NULL;
        pthread_mutex_unlock(&l->lock);
        if (failed)
            return cmd_fail(settings, &err);
        if (host && !ready) {
            report_ready(host, name);
            pl_server_ready(server, host);
            ready = true;
        }
    }
}

static bool told_again(const sigset_t *set)
{
    struct timespec now = {0};
    int sig = sigtimedwait(set, NULL, &now);
    return sig == SIGINT || sig == SIGTERM;
}

/* Finish what runs within the grace time, then cancel it; a second signal cancels at once. */
static void stop(const pl_settings *settings, pl_server *server, pl_host *host, const sigset_t *set)
{
    int64_t left_ms = pl_set_int(settings, PL_SET_GRACE) * 1000;
    pl_server_drain(server);
    while (left_ms > 0 && !told_again(set) && !pl_server_wait_idle(server, POLL_MS))
        left_ms -= POLL_MS;
    if (host)
        pl_engine_cancel_all(pl_host_engine(host));
    pl_server_wait_idle(server, CANCEL_MS);
}

static pl_status print_address(const char *host, int port, pl_error *err)
{
    char line[320];
    bool six = strchr(host, ':') != NULL;
    int n =
        snprintf(line, sizeof line, "listening on http://%s%.255s%s:%d\n", six ? "[" : "", host, six ? "]" : "", port);
    return cmd_print(line, (size_t)n, err);
}

static int run(const pl_settings *settings, loader *l, const char *name, const sigset_t *set)
{
    pl_error err;
    pl_server *server;
    pl_server_settings s = {.host = pl_set_text(settings, PL_SET_HOST),
                            .port = (int)pl_set_int(settings, PL_SET_PORT),
                            .name = name,
                            .strict_name = pl_set_on(settings, PL_SET_STRICT_NAME),
                            .keep_alive_s = (int)pl_set_int(settings, PL_SET_KEEP_ALIVE),
                            .failed = on_model_failed,
                            .failed_arg = l};
    if (pl_server_open(&server, &s, &err) != PL_OK)
        return cmd_fail(settings, &err);
    int code = CMD_FAILED;
    if (print_address(s.host, pl_server_port(server), &err) != PL_OK)
        code = cmd_fail(settings, &err);
    else if (pl_thread_start(&l->thread, load, l) != 0)
        pl_log(PL_LOG_ERROR, "the loading thread did not start");
    else
        code = wait_for_end(settings, l, server, name, set);
    pthread_mutex_lock(&l->lock);
    bool loading = !l->done;
    pl_host *host = l->host;
    pthread_mutex_unlock(&l->lock);
    if (!loading) {
        stop(settings, server, host, set);
        pthread_join(l->thread, NULL);
    }
    pl_server_close(server);
    pl_host_close(host); /* still loading: there is none, and the end of the process ends the thread */
    return code;
}

/* What /v1/models says: --name, else the folder's own name. Fresh memory, or NULL. */
static char *model_name(const pl_settings *settings, const char *dir)
{
    if (pl_set_given(settings, PL_SET_NAME))
        return strdup(pl_set_text(settings, PL_SET_NAME));
    char *real = realpath(dir, NULL);
    char *name = strdup(basename(real ? real : (char[]){"model"}));
    free(real);
    return name;
}

/* Is DIR/name there? ENOMEM, or why it is not. */
static int missing(const char *dir, const char *name)
{
    struct stat st;
    char *path = pl_path_join(dir, name);
    int why = !path ? ENOMEM : stat(path, &st) != 0 ? errno : 0;
    free(path);
    return why;
}

/* Looked at before we listen, for that is what most often is wrong; the rest shows while the model is loaded. */
static pl_status check_model_dir(const char *dir, pl_error *err)
{
    static const char hint[] = "a model is a folder with config.json, tokenizer.json and *.safetensors files";
    static const char *const files[] = {"config.json", "tokenizer.json", "model.safetensors.index.json"};
    struct stat st;
    if (stat(dir, &st) != 0)
        return pl_fail_param(err, PL_ENOTFOUND, "model", "-m %s: %s; %s", dir, strerror(errno), hint);
    if (!S_ISDIR(st.st_mode))
        return pl_fail_param(err, PL_ENOTFOUND, "model", "-m %s: not a folder; %s", dir, hint);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int why = missing(dir, files[i]);
        if (why && i == 2 && !missing(dir, "model.safetensors")) /* one file needs no index */
            why = 0;
        if (why)
            return pl_fail_param(err, PL_ENOTFOUND, "model", "-m %s: %s: %s; %s", dir, files[i], strerror(why), hint);
    }
    return PL_OK;
}

static pl_engine_settings engine_settings(const pl_settings *s)
{
    return (pl_engine_settings){
        .queue = (int)pl_set_int(s, PL_SET_QUEUE),
        .core = {.plain_streams = (int)pl_set_int(s, PL_SET_PLAIN_STREAMS),
                 .joint = (int)pl_set_int(s, PL_SET_DEPTH_JOINT),
                 .decode_share = pl_set_real(s, PL_SET_DECODE_SHARE),
                 .order = (pl_prompt_order)pl_set_int(s, PL_SET_PREFILL_ORDER),
                 .accept_log = pl_set_given(s, PL_SET_ACCEPT_LOG) ? pl_set_text(s, PL_SET_ACCEPT_LOG) : NULL,
                 .profile = pl_set_on(s, PL_SET_ROUND_PROFILE)}};
}

int cmd_serve(const pl_settings *settings)
{
    static loader l = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* outlives a load that is broken off */
    pl_error err;
    char *dir = NULL;
    pl_log_set_level((pl_log_level)pl_set_int(settings, PL_SET_LOG));
    /* Blocked in every thread from here on: only sigwait sees them. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    l.settings = (pl_host_settings){.threads = cmd_threads(settings),
                                    .context = (int)pl_set_int(settings, PL_SET_CONTEXT),
                                    .slots = (int)pl_set_int(settings, PL_SET_PARALLEL),
                                    .engine = engine_settings(settings),
                                    .cache_dir = pl_set_text(settings, PL_SET_CACHE_DIR),
                                    .seed_salt = pl_set_text(settings, PL_SET_SEED_SALT),
                                    .drafts = pl_set_on(settings, PL_SET_DRAFTS)};
    if (read_flags(settings, &l.settings.flags, &err) != PL_OK || cmd_model_dir(settings, &dir, &err) != PL_OK ||
        check_model_dir(dir, &err) != PL_OK) {
        free(dir);
        return cmd_fail(settings, &err);
    }
    l.settings.dir = dir;
    char *name = model_name(settings, dir);
    int code = CMD_FAILED;
    if (name)
        code = run(settings, &l, name, &set);
    else
        pl_log(PL_LOG_ERROR, "no memory for the model's name");
    free(name);
    if (l.done) /* else the loading thread still reads it */
        free(dir);
    return code;
}
