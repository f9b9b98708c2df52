#include "lanes/round_log.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { REPORT_EVERY = 512 };

static const char *const names[PL__PARTS] = {"host", "ingest", "propose", "verify", "draw", "conclude"};

pl_status pl__round_log_open(pl__round_log *log, const char *path, bool profile, pl_error *err)
{
    *log = (pl__round_log){.profile = profile};
    if (!path)
        return PL_OK;
    log->file = fopen(path, "ae");
    if (!log->file)
        return pl_fail_param(err, PL_EIO, "accept-log", "accept-log: %s cannot be written: %s", path, strerror(errno));
    setvbuf(log->file, NULL, _IOLBF, 1 << 16);
    return PL_OK;
}

static void report(pl__round_log *log)
{
    if (!log->profile || !log->rounds)
        return;
    char line[512];
    int at = snprintf(line, sizeof line, "%" PRIu64 " rounds, %.2f rows and %.2f tokens each, ms a round:", log->rounds,
                      (double)log->rows / (double)log->rounds, (double)log->tokens / (double)log->rounds);
    for (int i = 0; i < PL__PARTS && at > 0 && (size_t)at < sizeof line; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %s %.3f", names[i],
                       (double)log->part_ns[i] * 1e-6 / (double)log->rounds);
    pl_log(PL_LOG_INFO, "%s", line);
    log->rounds = log->rows = log->tokens = 0;
    memset(log->part_ns, 0, sizeof log->part_ns);
}

void pl__round_log_close(pl__round_log *log)
{
    report(log);
    if (log->file)
        fclose(log->file);
    log->file = NULL;
}

void pl__round_begin(pl__round_log *log)
{
    memset(log->round_ns, 0, sizeof log->round_ns);
    log->began_ns = log->mark_ns = pl_now_ns();
}

/* Time since the last mark goes to the part. */
void pl__round_part(pl__round_log *log, pl__part part)
{
    int64_t now = pl_now_ns();
    log->round_ns[part] += now - log->mark_ns;
    log->mark_ns = now;
}

void pl__round_warn(const char *what, const pl_error *why)
{
    pl_log(PL_LOG_WARNING, "%s: %s", what, why->message);
}

static void write_lane(FILE *f, const pl_depth_result *r)
{
    fprintf(f, "{\"slot\":%d,\"sampled\":%s,\"source\":\"%s\",\"depth\":%d,\"accepted\":%d", r->slot,
            r->sampled ? "true" : "false",
            r->depth == 0 ? "none"
            : r->copy     ? "copy"
                          : "head",
            r->depth, r->accepted);
    if (r->depth)
        fprintf(f, ",\"missed\":%s", r->missed ? "true" : "false");
    if (r->copy)
        fprintf(f, ",\"match\":%d", r->match);
    if (r->heads) {
        fprintf(f, ",\"agreed\":%d,\"confidence\":[", r->agreed);
        for (int i = 0; i < r->heads; i++)
            isfinite(r->confidence[i]) ? fprintf(f, "%s%.5g", i ? "," : "", (double)r->confidence[i])
                                       : fprintf(f, "%snull", i ? "," : "");
        fputc(']', f);
    }
    fputc('}', f);
}

static void write_round(pl__round_log *log, uint64_t number, const pl_depth_outcome *o)
{
    FILE *f = log->file;
    fprintf(f, "{\"round\":%" PRIu64 ",\"streams\":%d,\"rows\":%d,\"asks\":%d,\"lanes\":[", number, o->lanes, o->rows,
            o->asks);
    for (int i = 0; i < o->lanes; i++) {
        if (i)
            fputc(',', f);
        write_lane(f, &o->result[i]);
    }
    fputs("],\"ms\":{", f);
    for (int i = 0; i < PL__PARTS; i++)
        fprintf(f, "%s\"%s\":%.4f", i ? "," : "", names[i], pl__round_ms(log, (pl__part)i));
    fputs("}}\n", f);
    if (!ferror(f))
        return;
    pl_log(PL_LOG_WARNING, "accept-log: writing failed: %s; no more of it", strerror(errno));
    fclose(f);
    log->file = NULL;
}

void pl__round_end(pl__round_log *log, uint64_t number, const pl_depth_outcome *o)
{
    pl__round_part(log, PL__PART_HOST);
    if (log->file)
        write_round(log, number, o);
    if (!log->profile)
        return;
    log->rounds++;
    log->rows += (uint64_t)o->rows;
    for (int i = 0; i < o->lanes; i++)
        log->tokens += (uint64_t)(o->result[i].accepted + 1);
    for (int i = 0; i < PL__PARTS; i++)
        log->part_ns[i] += log->round_ns[i];
    if (log->rounds == REPORT_EVERY)
        report(log);
}
