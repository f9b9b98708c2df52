/* The completion splitter: worked cases, and random replies against a slow model that sees the whole reply at once, cut
 * at every place and byte by byte. */
#include "support.h"

#include "base/utf8.h"

typedef struct result {
    pl_buf reasoning, content;
    bool stopped;
    size_t index;
} result;

static void result_init(result *r)
{
    *r = (result){0};
    pl_buf_init(&r->reasoning, 1 << 20, "test");
    pl_buf_init(&r->content, 1 << 20, "test");
}

static void result_free(result *r)
{
    pl_buf_free(&r->reasoning);
    pl_buf_free(&r->content);
}

static pl_status collect(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err)
{
    result *r = ctx;
    assert_true(len > 0);
    assert_int_equal(pl_utf8_check(bytes, len), len); /* never a torn character */
    if (kind == PL_SPLIT_REASONING)
        assert_int_equal(r->content.len, 0); /* reasoning comes first */
    return pl_buf_add(kind == PL_SPLIT_REASONING ? &r->reasoning : &r->content, bytes, len, err);
}

/* Split text in pieces of `piece` bytes after a first one of `first`. */
static void split(const pl_splitter_options *o, const char *text, size_t len, size_t first, size_t piece, result *r)
{
    pl_error err;
    pl_splitter *s;
    result_init(r);
    OK(pl_splitter_new(o, collect, r, &s, &err));
    for (size_t i = 0; i < len;) {
        size_t n = i ? piece : first;
        n = n < len - i ? n : len - i;
        OK(pl_splitter_feed(s, text + i, n, &err));
        i += n;
        if (!n) { /* an empty first piece */
            OK(pl_splitter_feed(s, text, piece < len ? piece : len, &err));
            i = piece < len ? piece : len;
        }
    }
    OK(pl_splitter_finish(s, &err));
    r->stopped = pl_splitter_stopped(s, &r->index);
    pl_splitter_free(s);
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

static void repair(pl_buf *to, const char *bytes, size_t len)
{
    pl_error err;
    OK(pl_utf8_repair(to, bytes, len, &err));
}

/* Where the earliest stop string ends; *start where the longest that ends there starts. */
static bool find_stop(const pl_splitter_options *o, const char *text, size_t len, size_t *start, size_t *end,
                      size_t *index)
{
    for (size_t e = 1; e <= len; e++) {
        bool found = false;
        for (size_t i = 0; i < o->n_stops; i++) {
            size_t n = o->stops[i].len;
            if (n && n <= e && memcmp(text + e - n, o->stops[i].bytes, n) == 0 && (!found || e - n < *start)) {
                found = true;
                *start = e - n;
                *end = e;
                *index = i;
            }
        }
        if (found)
            return true;
    }
    return false;
}

static void model(const pl_splitter_options *o, const char *text, size_t len, result *r)
{
    pl_error err;
    pl_buf answer;
    size_t at = 0, start = 0, end = 0;
    result_init(r);
    pl_buf_init(&answer, 1 << 20, "test");
    if (o->in_reasoning && !o->raw) {
        while (!o->continues && at < len && text[at] == '\n')
            at++;
        const char *mark = memmem(text + at, len - at, "</think>", 8);
        size_t stop = mark ? (size_t)(mark - text) : len;
        size_t next = mark ? stop + 8 : len;
        while (mark && stop > at && text[stop - 1] == '\n')
            stop--;
        repair(&r->reasoning, text + at, stop - at);
        at = next;
    }
    while (!o->raw && (!o->continues || o->in_reasoning) && at < len && text[at] == '\n')
        at++;
    while (at < len) {
        bool mark = !o->raw && len - at >= 8 && memcmp(text + at, "</think>", 8) == 0;
        if (!mark)
            OK(pl_buf_addc(&answer, text[at], &err));
        at += mark ? 8 : 1;
    }
    r->stopped = find_stop(o, answer.data, answer.len, &start, &end, &r->index);
    if (r->stopped)
        answer.len = o->keep_stop ? end : start;
    repair(&r->content, answer.data, answer.len);
    pl_buf_free(&answer);
}

static void same(const result *a, const result *b, const char *text, size_t len)
{
    bool equal = a->reasoning.len == b->reasoning.len && a->content.len == b->content.len && a->stopped == b->stopped &&
                 a->index == b->index &&
                 (!a->reasoning.len || memcmp(a->reasoning.data, b->reasoning.data, a->reasoning.len) == 0) &&
                 (!a->content.len || memcmp(a->content.data, b->content.data, a->content.len) == 0);
    if (!equal)
        fail_msg("%.*s: reasoning \"%s\" / \"%s\", content \"%s\" / \"%s\", stopped %d / %d", (int)len, text,
                 a->reasoning.data ? a->reasoning.data : "", b->reasoning.data ? b->reasoning.data : "",
                 a->content.data ? a->content.data : "", b->content.data ? b->content.data : "", a->stopped,
                 b->stopped);
}

/* Every cut of the reply gives what the model gives. */
static void check_all_cuts(const pl_splitter_options *o, const char *text, size_t len)
{
    result expected, got;
    model(o, text, len, &expected);
    for (size_t first = 0; first <= len; first++) {
        split(o, text, len, first, len + 1, &got);
        same(&expected, &got, text, len);
        result_free(&got);
    }
    for (size_t piece = 1; piece <= 4; piece++) {
        split(o, text, len, piece, piece, &got);
        same(&expected, &got, text, len);
        result_free(&got);
    }
    result_free(&expected);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_worked_cases(void **state)
{
    (void)state;
    static const pl_stop stops[] = {{"STOP", 4}, {"", 0}, {"\xe5\xa5\xbd", 3}, {"aab", 3}};
    static const struct {
        bool in_reasoning, continues, raw, stop, keep;
        const char *text, *reasoning, *content;
    } cases[] = {
        {0, 0, 0, 0, 0, "Hello", "", "Hello"},
        {0, 0, 0, 0, 0, "\n\nHello\n\n", "", "Hello\n\n"},
        {0, 1, 0, 0, 0, "\n\nHello", "", "\n\nHello"},
        {0, 0, 1, 0, 0, "\n</think>\n", "", "\n</think>\n"},
        {1, 0, 0, 0, 0, "\n\nI think\n\n</think>\n\nHi\n", "I think", "Hi\n"},
        {1, 1, 0, 0, 0, "\n\nI think</think>Hi", "\n\nI think", "Hi"},
        {1, 0, 0, 0, 0, "</think>Hi", "", "Hi"},
        {1, 0, 0, 0, 0, "\n</think>", "", ""},
        {1, 0, 0, 0, 0, "never ends\n\n", "never ends\n\n", ""},
        {1, 0, 0, 0, 0, "cut </thin", "cut </thin", ""},
        {1, 0, 0, 0, 0, "a\n</b\n\n<</think>c", "a\n</b\n\n<", "c"},
        {1, 0, 0, 0, 0, "a</think>b</think>c</think>", "a", "bc"},
        {0, 0, 0, 0, 0, "b</think></thinkc<", "", "b</thinkc<"},
        {0, 0, 0, 1, 0, "one STOP two", "", "one "},
        {0, 0, 0, 1, 1, "one STOP two", "", "one STOP"},
        {1, 0, 0, 1, 0, "one STOP two</think>three STOP", "one STOP two", "three "},
        {0, 0, 0, 1, 0, "STO", "", "STO"},
        {0, 0, 0, 1, 0, "\xe4\xbd\xa0\xe5\xa5\xbd!", "", "\xe4\xbd\xa0"},
        {0, 0, 0, 1, 0, "aaab", "", "a"},
        {0, 0, 0, 1, 0, "ST</think>OP!", "", ""},
        {0, 0, 0, 0, 0, "\xf0\x9f\x99\x82", "", "\xf0\x9f\x99\x82"},
        {0, 0, 0, 0, 0,
         "a\x80\xff"
         "b\xe5\xa5",
         "",
         "a\xef\xbf\xbd\xef\xbf\xbd"
         "b\xef\xbf\xbd"},
        {1, 0, 0, 0, 0, "a\xf0\x9f</think>\x99\x82", "a\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
        {0, 0, 0, 0, 0, "x\n\n<｜DSML｜ calls>\n", "", "x\n\n<｜DSML｜ calls>\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result got;
        pl_splitter_options o = {.in_reasoning = cases[i].in_reasoning,
                                 .continues = cases[i].continues,
                                 .raw = cases[i].raw,
                                 .keep_stop = cases[i].keep,
                                 .stops = stops,
                                 .n_stops = cases[i].stop ? 4 : 0};
        size_t len = strlen(cases[i].text);
        split(&o, cases[i].text, len, len, 1, &got);
        assert_string_equal(got.reasoning.data ? got.reasoning.data : "", cases[i].reasoning);
        assert_string_equal(got.content.data ? got.content.data : "", cases[i].content);
        result_free(&got);
        check_all_cuts(&o, cases[i].text, len);
    }
}

static void test_random_replies(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "\n",       "\n\n", "<",    "/",    "</",           "</think>", "</thin",  "</think>\n",
        "a",        "b",    "ab",   "aba",  "\xe5\xa5\xbd", "\xe5\xa5", "\xbd",    "\xf0\x9f\x99\x82",
        "\xf0\x9f", "\x80", "\xff", "\xc0", "\xed\xa0",     " ",        "｜DSML｜"};
    static const char *const words[] = {"a",
                                        "ab",
                                        "aba",
                                        "abab",
                                        "\n",
                                        "\n\n",
                                        "\xe5\xa5\xbd",
                                        "\xa5\xbd\xe5",
                                        "</",
                                        "",
                                        "think",
                                        "bb",
                                        "\xf0\x9f\x99\x82\n",
                                        "<\n"};
    for (int round = 0; round < 1500; round++) {
        char text[256] = "";
        pl_stop stops[4];
        pl_splitter_options o = {.in_reasoning = below(2),
                                 .continues = below(4) == 0,
                                 .raw = below(6) == 0,
                                 .keep_stop = below(4) == 0,
                                 .stops = stops,
                                 .n_stops = below(5)};
        for (size_t n = below(14); n; n--)
            strcat(text, pieces[below(sizeof pieces / sizeof *pieces)]);
        for (size_t i = 0; i < o.n_stops; i++) {
            const char *word = words[below(sizeof words / sizeof *words)];
            stops[i] = (pl_stop){word, strlen(word)};
        }
        check_all_cuts(&o, text, strlen(text));
    }
}

/* A piece longer than the inner run, and as much rubbish. */
static void test_long_pieces(void **state)
{
    (void)state;
    static char text[20000];
    for (int fill = 0; fill < 4; fill++) {
        static const char *const fills[] = {"\xe5\xa5\xbd", "\xff", "\n", "a<"};
        result expected, got;
        pl_stop stop = {"a<a<b", 5};
        pl_splitter_options o = {.in_reasoning = true, .stops = &stop, .n_stops = 1};
        size_t n = strlen(fills[fill]);
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = fills[fill][i % n];
        memcpy(text, "x", 1);
        memcpy(text + 9000, "</think>", 8);
        model(&o, text, sizeof text, &expected);
        for (size_t piece = sizeof text; piece > 4000; piece -= 3999) {
            split(&o, text, sizeof text, piece, piece, &got);
            same(&expected, &got, "long", 4);
            result_free(&got);
        }
        result_free(&expected);
    }
}

/* Answer text is shown at once unless it may be the start of a stop string: then no more than that is kept. */
static void test_nothing_is_held_needlessly(void **state)
{
    (void)state;
    pl_error err;
    pl_splitter *s;
    result r;
    pl_stop stop = {"abcabd", 6};
    pl_splitter_options o = {.stops = &stop, .n_stops = 1};
    result_init(&r);
    OK(pl_splitter_new(&o, collect, &r, &s, &err));
    static const struct {
        const char *in;
        size_t shown;
    } steps[] = {{"x", 1}, {"a", 1}, {"b", 1},    {"c", 1},    {"ab", 1},
                 {"c", 4}, {"x", 8}, {"\xe5", 8}, {"\xa5", 8}, {"\xbd", 11}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        OK(pl_splitter_feed(s, steps[i].in, strlen(steps[i].in), &err));
        assert_int_equal(r.content.len, steps[i].shown);
    }
    OK(pl_splitter_finish(s, &err));
    OK(pl_splitter_finish(s, &err));
    assert_int_equal(pl_splitter_feed(s, "x", 1, &err), PL_EINVAL);
    pl_splitter_free(s);
    result_free(&r);
}

static void test_tokens(void **state)
{
    (void)state;
    pl_error err;
    pl_tokenizer *tok;
    OK(pl_tokenizer_load(&tok, "models/nano/tokenizer.json", &err));
    for (int raw = 0; raw < 2; raw++) {
        pl_splitter *s;
        pl_ids ids;
        result r;
        pl_splitter_options o = {.in_reasoning = true, .raw = raw};
        static const char text[] =
            "hm\n<｜User｜></think>\n<think>a<｜begin▁of▁sentence｜>é｜DSML｜b<｜end▁of▁sentence｜>";
        result_init(&r);
        pl_ids_init(&ids, 1000);
        OK(pl_splitter_new(&o, collect, &r, &s, &err));
        OK(pl_tokenizer_encode(tok, text, strlen(text), true, &ids, &err));
        for (size_t i = 0; i < ids.len; i++)
            OK(pl_splitter_feed_token(s, tok, ids.data[i], &err));
        assert_int_equal(pl_splitter_feed_token(s, tok, 1 << 20, &err), PL_EINVAL);
        assert_int_equal(pl_splitter_in_reasoning(s), false);
        OK(pl_splitter_finish(s, &err));
        assert_string_equal(r.content.data, raw ? "hm\n<｜User｜></think>\n<think>aé｜DSML｜b" : "aé｜DSML｜b");
        if (!raw)
            assert_string_equal(r.reasoning.data, "hm");
        pl_splitter_free(s);
        pl_ids_free(&ids);
        result_free(&r);
    }
    pl_tokenizer_close(tok);
}

static pl_status full(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err)
{
    (void)ctx, (void)kind, (void)bytes, (void)len;
    return pl_fail(err, PL_ELIMIT, "the queue is full");
}

static void test_refusals(void **state)
{
    (void)state;
    pl_error err;
    pl_splitter *s = NULL;
    char *long_stop = calloc(1, PL_SPLIT_STOP_BYTES_MAX + 1);
    assert_non_null(long_stop);
    pl_stop stops[PL_SPLIT_STOPS_MAX + 1] = {{"x", 1}};
    pl_splitter_options o = {.stops = stops, .n_stops = PL_SPLIT_STOPS_MAX + 1};
    assert_int_equal(pl_splitter_new(&o, full, NULL, &s, &err), PL_EINVAL);
    assert_string_equal(err.param, "stop");
    assert_null(s);
    o.n_stops = 2;
    stops[1] = (pl_stop){long_stop, PL_SPLIT_STOP_BYTES_MAX + 1};
    assert_int_equal(pl_splitter_new(&o, full, NULL, &s, &err), PL_EINVAL);
    stops[1].len--;
    OK(pl_splitter_new(&o, full, NULL, &s, &err));
    assert_int_equal(pl_splitter_feed(s, "a", 1, &err), PL_ELIMIT); /* the sink's own refusal */
    assert_string_equal(err.message, "the queue is full");
    pl_splitter_free(s);
    pl_splitter_free(NULL);
    free(long_stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_cases), cmocka_unit_test(test_random_replies),
        cmocka_unit_test(test_long_pieces),  cmocka_unit_test(test_nothing_is_held_needlessly),
        cmocka_unit_test(test_tokens),       cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
