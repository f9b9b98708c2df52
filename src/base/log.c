#include "base/log.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic int level_now = PL_LOG_INFO;

void pl_log_set_level(pl_log_level level)
{
    atomic_store(&level_now, level);
}

void pl_log(pl_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    if ((int)level > atomic_load(&level_now))
        return;
    char line[1024], shown[sizeof line];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pl_printable(shown, sizeof shown, line, strlen(line));    /* names of clients' making stay on their line */
    fprintf(stderr, "paceline: %s%s\n", names[level], shown); /* one call: the stream's lock keeps lines whole */
}
