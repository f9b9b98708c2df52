/* Three machines in a row, each fed byte by byte, so that where the input was cut cannot matter:
 *
 *   bytes --think--> reasoning ---------------------> run --UTF-8--> sink
 *                \-> answer bytes --stop strings--/
 *
 * think: newlines that may turn out to stand before `</think>` are counted, not stored; a part of `</think>` is a
 * number. stop: one Knuth-Morris-Pratt state a stop string; what is held back is the longest of the states, and its
 * bytes are the first bytes of that stop string, so nothing needs storing. The parser of tool calls will stand between
 * the two, where answer bytes go by. */
#include "text/splitter.h"

#include "base/utf8.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_BYTES = 4096 };

static const char mark[] = "</think>";
static const size_t mark_len = sizeof mark - 1;

typedef enum stage { REASONING_START, REASONING, CONTENT_START, CONTENT, RAW } stage;

typedef struct matcher {
    char *bytes;    /* len of them */
    uint16_t *fail; /* fail[i]: length of the longest proper border of bytes[0..i] */
    size_t len;
    size_t state; /* bytes matched so far, < len */
} matcher;

struct pl_splitter {
    pl_split_sink sink;
    void *ctx;
    bool keep_stop, finished;

    stage stage;
    size_t newlines; /* of the reasoning, seen and not shown yet */
    size_t marked;   /* bytes of the mark seen behind them */

    matcher stops[PL_SPLIT_STOPS_MAX];
    size_t n_stops;
    size_t held, holder; /* the longest state and whose it is */
    bool stopped;
    size_t found;

    pl_split_kind kind;  /* of the run */
    char run[RUN_BYTES]; /* shown bytes, not yet UTF-8 whole */
    size_t run_len;
    char clean[RUN_BYTES * 3]; /* a byte becomes at most one U+FFFD of 3 */
};

/* ---- run and UTF-8 ---------------------------------------------------------------------------------------------- */

/* Hand the run to the sink. An incomplete character at its end stays, unless the run is over. */
static pl_status deliver(pl_splitter *s, bool over, pl_error *err)
{
    size_t from = 0, to = 0;
    while (from < s->run_len) {
        uint32_t cp;
        size_t left = s->run_len - from;
        int n = pl_utf8_next(s->run + from, left, &cp);
        if (n < 0 && !over && left < 4 && pl_utf8_partial(s->run + from, left))
            break;
        if (n > 0)
            memcpy(s->clean + to, s->run + from, (size_t)n);
        to += n > 0 ? (size_t)n : (size_t)pl_utf8_put(0xFFFD, s->clean + to);
        from += (size_t)(n > 0 ? n : -n);
    }
    memmove(s->run, s->run + from, s->run_len - from);
    s->run_len -= from;
    return to ? s->sink(s->ctx, s->kind, s->clean, to, err) : PL_OK;
}

static pl_status show(pl_splitter *s, pl_split_kind kind, char byte, pl_error *err)
{
    if (kind != s->kind) {
        PL_TRY(deliver(s, true, err));
        s->kind = kind;
    }
    if (s->run_len == RUN_BYTES)
        PL_TRY(deliver(s, false, err));
    s->run[s->run_len++] = byte;
    return PL_OK;
}

/* ---- stop strings ----------------------------------------------------------------------------------------------- */

/* Show n answer bytes: the first ones of what is held back followed by byte. */
static pl_status release(pl_splitter *s, size_t n, char byte, pl_error *err)
{
    for (size_t i = 0; i < n; i++)
        PL_TRY(show(s, PL_SPLIT_CONTENT, i < s->held ? s->stops[s->holder].bytes[i] : byte, err));
    return PL_OK;
}

/* One answer byte. Of several stop strings that end here the longest is found. */
static pl_status answer(pl_splitter *s, char byte, pl_error *err)
{
    size_t held = 0, holder = 0, whole = 0;
    if (s->stopped)
        return PL_OK;
    for (size_t i = 0; i < s->n_stops; i++) {
        matcher *m = &s->stops[i];
        if (!m->len)
            continue;
        while (m->state && m->bytes[m->state] != byte)
            m->state = m->fail[m->state - 1];
        m->state += m->bytes[m->state] == byte;
        if (m->state == m->len) {
            m->state = m->fail[m->len - 1];
            if (m->len > whole) {
                whole = m->len;
                s->found = i;
            }
        }
        if (m->state > held) {
            held = m->state;
            holder = i;
        }
    }
    s->stopped = whole > 0;
    size_t keep = whole ? (s->keep_stop ? 0 : whole) : held;
    PL_TRY(release(s, s->held + 1 - keep, byte, err));
    s->held = s->stopped ? 0 : held;
    s->holder = holder;
    return PL_OK;
}

/* ---- thinking --------------------------------------------------------------------------------------------------- */

static pl_status out(pl_splitter *s, char byte, pl_error *err)
{
    return s->stage == REASONING ? show(s, PL_SPLIT_REASONING, byte, err) : answer(s, byte, err);
}

/* What was held back is ordinary text after all. */
static pl_status unhold(pl_splitter *s, pl_error *err)
{
    for (; s->newlines; s->newlines--)
        PL_TRY(out(s, '\n', err));
    for (size_t i = 0; i < s->marked; i++)
        PL_TRY(out(s, mark[i], err));
    s->marked = 0;
    return PL_OK;
}

static pl_status think(pl_splitter *s, char byte, pl_error *err)
{
    if (s->stage == RAW)
        return answer(s, byte, err);
    if (s->stage == REASONING_START || s->stage == CONTENT_START) {
        if (byte == '\n')
            return PL_OK;
        s->stage = s->stage == REASONING_START ? REASONING : CONTENT;
    }
    if (byte == mark[s->marked]) {
        if (++s->marked < mark_len)
            return PL_OK;
        s->stage = s->stage == REASONING ? CONTENT_START : CONTENT;
        s->newlines = s->marked = 0;
        return PL_OK;
    }
    if (s->marked) { /* the mark's first byte does not come again in it, so no part of it can start a new one */
        PL_TRY(unhold(s, err));
        if (byte == mark[0]) {
            s->marked = 1;
            return PL_OK;
        }
    }
    if (byte == '\n' && s->stage == REASONING) {
        s->newlines++;
        return PL_OK;
    }
    PL_TRY(unhold(s, err));
    return out(s, byte, err);
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

static bool build(matcher *m, const pl_stop *stop)
{
    m->bytes = malloc(stop->len);
    m->fail = calloc(stop->len, sizeof *m->fail);
    m->len = stop->len;
    if (!m->bytes || !m->fail)
        return false;
    memcpy(m->bytes, stop->bytes, stop->len);
    for (size_t i = 1, k = 0; i < m->len; i++) {
        while (k && m->bytes[i] != m->bytes[k])
            k = m->fail[k - 1];
        k += m->bytes[i] == m->bytes[k];
        m->fail[i] = (uint16_t)k;
    }
    return true;
}

static stage first_stage(const pl_splitter_options *o)
{
    if (o->raw)
        return RAW;
    if (o->in_reasoning)
        return o->continues ? REASONING : REASONING_START;
    return o->continues ? CONTENT : CONTENT_START;
}

pl_status pl_splitter_new(const pl_splitter_options *options, pl_split_sink sink, void *ctx, pl_splitter **out_splitter,
                          pl_error *err)
{
    *out_splitter = NULL;
    if (options->n_stops > PL_SPLIT_STOPS_MAX)
        return pl_fail_param(err, PL_EINVAL, "stop", "stop must have at most %d strings, found %zu", PL_SPLIT_STOPS_MAX,
                             options->n_stops);
    for (size_t i = 0; i < options->n_stops; i++) {
        if (options->stops[i].len > PL_SPLIT_STOP_BYTES_MAX)
            return pl_fail_param(err, PL_EINVAL, "stop", "stop strings must have at most %d bytes, found %zu",
                                 PL_SPLIT_STOP_BYTES_MAX, options->stops[i].len);
    }
    pl_splitter *s = calloc(1, sizeof *s);
    bool built = s != NULL;
    for (size_t i = 0; built && i < options->n_stops; i++) {
        if (options->stops[i].len)
            built = build(&s->stops[i], &options->stops[i]);
        s->n_stops = i + 1;
    }
    if (!built) {
        pl_splitter_free(s);
        return pl_fail(err, PL_ENOMEM, "no memory to split a reply");
    }
    s->sink = sink;
    s->ctx = ctx;
    s->keep_stop = options->keep_stop;
    s->stage = first_stage(options);
    *out_splitter = s;
    return PL_OK;
}

void pl_splitter_free(pl_splitter *splitter)
{
    if (!splitter)
        return;
    for (size_t i = 0; i < PL_SPLIT_STOPS_MAX; i++) {
        free(splitter->stops[i].bytes);
        free(splitter->stops[i].fail);
    }
    free(splitter);
}

pl_status pl_splitter_feed(pl_splitter *splitter, const char *bytes, size_t len, pl_error *err)
{
    if (splitter->finished)
        return pl_fail(err, PL_EINVAL, "text after the end of a reply");
    for (size_t i = 0; i < len && !splitter->stopped; i++)
        PL_TRY(think(splitter, bytes[i], err));
    return deliver(splitter, splitter->stopped, err);
}

pl_status pl_splitter_feed_token(pl_splitter *splitter, const pl_tokenizer *tokenizer, int32_t id, pl_error *err)
{
    pl_token token;
    if (!pl_tokenizer_token(tokenizer, id, &token))
        return pl_fail(err, PL_EINVAL, "id %d is no token of this vocabulary", (int)id);
    static const char dsml[] = "｜DSML｜";
    bool text = !token.added;
    if (splitter->stage == RAW)
        text = text || !token.special;
    else
        text = text || (token.len == mark_len && memcmp(token.bytes, mark, mark_len) == 0) ||
               (token.len == sizeof dsml - 1 && memcmp(token.bytes, dsml, sizeof dsml - 1) == 0);
    return pl_splitter_feed(splitter, token.bytes, text ? token.len : 0, err);
}

pl_status pl_splitter_finish(pl_splitter *splitter, pl_error *err)
{
    if (splitter->finished)
        return PL_OK;
    if (!splitter->stopped) {
        PL_TRY(unhold(splitter, err));
        size_t held = splitter->held;
        PL_TRY(release(splitter, held, '\0', err));
    }
    splitter->finished = true;
    splitter->held = 0;
    return deliver(splitter, true, err);
}

bool pl_splitter_stopped(const pl_splitter *splitter, size_t *index)
{
    if (splitter->stopped && index)
        *index = splitter->found;
    return splitter->stopped;
}

bool pl_splitter_in_reasoning(const pl_splitter *splitter)
{
    return splitter->stage == REASONING_START || splitter->stage == REASONING;
}
