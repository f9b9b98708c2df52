/* What a reply's stream is taken for: complete, verified, measured, or none of these. */
#include "base/check.h"
#include "bench/reply.h"

#define HEAD  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define SHA   "7ba93607c167d4d215a78664ee2704154fc08fd3820eb53b8d8db02bd1371444"
#define OTHER "8ba93607c167d4d215a78664ee2704154fc08fd3820eb53b8d8db02bd1371444"
#define PIECE "data: {\"choices\": [{\"delta\": {\"content\": \"ab\"}}]}\n\n"
#define LAST  "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"length\"}]}\n\n"
#define USAGE "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 9}}\n\n"
#define HASH  "data: {\"choices\": [], \"token_sha\": \"" SHA "\"}\n\n"
#define DONE  "data: [DONE]\n\n"

/* One event a millisecond. */
static void read_text(pl_bench_reply *r, const char *text)
{
    pl_bench_reply_init(r);
    r->sent = 1000000;
    int64_t now = 2000000;
    while (*text && !r->ended) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) + 2 : strlen(text);
        (void)pl_bench_reply_bytes(r, text, n, now);
        now += 1000000;
        text += n;
    }
    if (!r->ended)
        assert_true(pl_bench_reply_closed(r, now));
}

static void expect(const char *text, bool complete, bool verified, bool measured)
{
    pl_bench_reply *r = malloc(sizeof *r);
    read_text(r, text);
    assert_true(r->ended);
    assert_int_equal(pl_bench_reply_complete(r), complete);
    assert_int_equal(pl_bench_reply_verified(r), verified);
    assert_int_equal(pl_bench_reply_measured(r), measured);
    json_t *json = pl_bench_reply_json(r);
    assert_non_null(json);
    assert_int_equal(json_is_true(json_object_get(json, "verified")), verified);
    json_decref(json);
    pl_bench_reply_free(r);
    free(r);
}

static void what_counts(void **state)
{
    (void)state;
    expect(HEAD PIECE PIECE PIECE PIECE LAST USAGE HASH DONE, true, true, true);
    expect(HEAD PIECE PIECE PIECE LAST USAGE HASH DONE, true, true, false);    /* three pieces: no rate */
    expect(HEAD PIECE PIECE PIECE PIECE LAST USAGE DONE, true, false, true);   /* no hash: measured, not verified */
    expect(HEAD PIECE PIECE PIECE PIECE LAST HASH DONE, false, false, false);  /* no usage */
    expect(HEAD PIECE PIECE PIECE PIECE USAGE HASH DONE, false, false, false); /* no finish_reason */
    expect(HEAD PIECE PIECE PIECE PIECE LAST USAGE HASH, false, false, false); /* no [DONE] */
    expect(HEAD LAST USAGE HASH DONE DONE, false, false, false);               /* goes on after [DONE] */
    expect(HEAD PIECE "data: {\"error\": {\"message\": \"x\"}}\n\n", false, false, false);
    expect(HEAD PIECE "data: oops\n\n" DONE, false, false, false);
    expect("HTTP/1.1 500 Oops\r\n\r\n" PIECE LAST USAGE HASH DONE, false, false, false);
}

static void hashes(void **state)
{
    (void)state;
    expect(HEAD LAST USAGE HASH HASH DONE, true, true, false);
    expect(HEAD LAST USAGE HASH "data: {\"token_sha\": \"" OTHER "\"}\n\n" DONE, true, false, false);
    expect(HEAD LAST USAGE "data: {\"paceline\": {\"token_sha\": \"" SHA "\"}}\n\n" DONE, true, true, false);
    expect(HEAD LAST USAGE "data: {\"tensorfold\": {\"token_sha\": \"7ba93607c167\"}}\n\n" DONE, true, true, false);
    expect(HEAD LAST USAGE "data: {\"tensorfold\": {\"token_sha\": \"7ba93607c167\"}}\n\n" HASH DONE, true, true,
           false);
    expect(HEAD LAST USAGE "data: {\"choices\": [{\"token_sha\": \"" SHA "\"}]}\n\n" DONE, true, true, false);
    static const char *const none[] = {"\"\"", "\"7ba93607c16\"",  "\"7BA93607C167\"", "7",
                                       "null", "\"xyz93607c167\"", "\"" SHA "0\""};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char text[2048];
        snprintf(text, sizeof text, HEAD LAST USAGE "data: {\"paceline\": {\"token_sha\": %s}}\n\n" DONE, none[i]);
        expect(text, true, false, false);
    }
}

static void times_and_counts(void **state)
{
    (void)state;
    pl_bench_reply *r = malloc(sizeof *r);
    read_text(r,
              HEAD "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n" PIECE
                   "data: {\"choices\": [{\"text\": \"c\"}]}\n\n"
                   "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"r\", \"reasoning\": \"r\"}}]}\n\n" LAST
                   "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 9, "
                   "\"prompt_tokens_details\": {\"cached_tokens\": 2}}, \"paceline\": {\"rounds\": 4}}\n\n" DONE);
    assert_int_equal(r->pieces, 3);
    assert_int_equal(r->piece[1] - r->piece[0], 1000000);
    assert_int_equal(r->tokens, 9);
    assert_int_equal(r->prompt_tokens, 3);
    assert_int_equal(r->cached_tokens, 2);
    assert_string_equal(r->finish_reason, "length");
    /* SHA-256 of "abc" and of "r" */
    assert_string_equal(r->output_sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(r->reasoning_sha256, "454349e422f05297191ead13e21d3db520e5abef52055e4964b82fb213f593a1");
    assert_int_equal(json_integer_value(json_object_get(r->block, "rounds")), 4);
    json_t *json = pl_bench_reply_json(r);
    assert_string_equal(json_string_value(json_object_get(json, "cache_state")), "reused");
    json_decref(json);
    pl_bench_reply_free(r);
    free(r);
}

static void errors_say_why(void **state)
{
    (void)state;
    pl_bench_reply *r = malloc(sizeof *r);
    read_text(r, HEAD PIECE "data: {\"error\": {\"message\": \"the model failed\"}}\n\n");
    assert_true(r->failed);
    assert_non_null(strstr(r->error, "the model failed"));
    pl_bench_reply_free(r);
    read_text(r, "");
    assert_true(r->failed);
    assert_non_null(strstr(r->error, "without an answer"));
    pl_bench_reply_free(r);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts),
        cmocka_unit_test(hashes),
        cmocka_unit_test(times_and_counts),
        cmocka_unit_test(errors_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
