/* SHA-256 against the published examples (NIST FIPS 180-4 examples and CAVS short messages). */
#include "base/check.h"
#include "base/sha256.h"

static void expect(const void *bytes, size_t n, const char *hex)
{
    pl_sha256 sha;
    char out[65];
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, bytes, n);
    pl_sha256_hex(&sha, out);
    assert_string_equal(out, hex);
}

static void published_examples(void **state)
{
    (void)state;
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrst"
           "nopqrstu",
           112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    expect("\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
    expect("\x11\xaf", 2, "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98");
}

static void a_million_letters(void **state)
{
    (void)state;
    pl_sha256 sha;
    char block[1000], out[65];
    memset(block, 'a', sizeof block);
    pl_sha256_init(&sha);
    for (int i = 0; i < 1000; i++)
        pl_sha256_add(&sha, block, sizeof block);
    pl_sha256_hex(&sha, out);
    assert_string_equal(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Any cut into pieces gives the digest of the whole, and asking in between changes nothing. */
static void pieces_equal_the_whole(void **state)
{
    (void)state;
    unsigned char text[300];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 7 + 1);
    for (size_t n = 0; n <= sizeof text; n++) {
        pl_sha256 whole, parts;
        unsigned char a[32], b[32];
        pl_sha256_init(&whole);
        pl_sha256_add(&whole, text, n);
        pl_sha256_digest(&whole, a);
        pl_sha256_init(&parts);
        for (size_t at = 0, step = 1; at < n; step = step % 70 + 1) {
            size_t take = step < n - at ? step : n - at;
            pl_sha256_add(&parts, text + at, take);
            pl_sha256_digest(&parts, b);
            at += take;
        }
        pl_sha256_digest(&parts, b);
        assert_memory_equal(a, b, 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(a_million_letters),
        cmocka_unit_test(pieces_equal_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
