/* What the commands share: failing, printing, finding the model. */
#include "cli/cmd.h"

#include "base/file.h"
#include "base/num.h"
#include "base/threads.h"
#include "cli/version.h"
#include "text/chat.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cmd_fail(const pl_settings *settings, const pl_error *err)
{
    fprintf(stderr, "paceline %s: %s\n", settings->command->name, err->message);
    if (err->status == PL_ECANCELED)
        return CMD_INTERRUPTED;
    return err->status == PL_EINVAL ? CMD_USAGE : CMD_FAILED;
}

int cmd_threads(const pl_settings *settings)
{
    int64_t n = pl_set_int(settings, PL_SET_THREADS);
    return n > 0 ? (int)n : pl_cpu_count();
}

pl_status cmd_effort(const pl_settings *settings, int *effort, pl_error *err)
{
    const char *text = pl_set_text(settings, PL_SET_EFFORT);
    int64_t number = 0;
    if (strcmp(text, "low") == 0)
        number = PL_CHAT_EFFORT_LOW;
    else if (strcmp(text, "high") == 0)
        number = PL_CHAT_EFFORT_HIGH;
    else if (strcmp(text, "max") == 0)
        number = PL_CHAT_EFFORT_MAX;
    else if (!pl_parse_i64(text, 1, 100, &number))
        return pl_set_refuse(settings, PL_SET_EFFORT, "low, high, max or a whole number from 1 to 100", err);
    *effort = (int)number;
    return PL_OK;
}

pl_status cmd_print(const char *bytes, size_t n, pl_error *err)
{
    if ((n && fwrite(bytes, 1, n, stdout) != n) || fflush(stdout) != 0)
        return pl_fail(err, PL_EIO, "standard output: %s", strerror(errno));
    return PL_OK;
}

/* base/name when it is there and can be read, else NULL. Fresh memory. */
static char *found_under(const char *base, const char *name)
{
    char *path = pl_path_join(base, name);
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* The build tree puts the program at build/PRESET/, an install at PREFIX/bin: look in the program's folder and above
 * it. */
static char *found_near_program(const char *name)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return NULL;
        *slash = '\0';
        char *found = found_under(path, name);
        if (!found) {
            char *share = pl_path_join(path, "share/paceline");
            found = share ? found_under(share, name) : NULL;
            free(share);
        }
        if (found)
            return found;
    }
    return NULL;
}

pl_status cmd_shared_file(const char *name, char **path, pl_error *err)
{
    *path = found_near_program(name);
    if (!*path)
        *path = found_under(PACELINE_SHARE, name);
    if (!*path)
        *path = found_under(".", name);
    return *path
               ? PL_OK
               : pl_fail(err, PL_ENOTFOUND, "%s is neither near the program nor in %s nor here", name, PACELINE_SHARE);
}

pl_status cmd_model_dir(const pl_settings *settings, char **dir, pl_error *err)
{
    const char *given = pl_set_text(settings, PL_SET_MODEL);
    if (*given) {
        *dir = strdup(given);
        return *dir ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the model's name");
    }
    if (cmd_shared_file("models/nano/config.json", dir, err) == PL_OK)
        (*dir)[strlen(*dir) - strlen("/config.json")] = '\0';
    if (*dir)
        return PL_OK;
    return pl_fail_param(err, PL_ENOTFOUND, "model",
                         "no -m DIR given, and models/nano is neither near the program nor in %s nor here",
                         PACELINE_SHARE);
}
