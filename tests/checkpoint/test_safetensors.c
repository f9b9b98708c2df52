/* The header of one shard: what is read, what is refused, and that no mutation breaks the reader. */
#include "base/check.h"

#include "checkpoint/safetensors.h"

/* A file of this header text and n bytes of data, in fresh memory of exactly its size (so that the address sanitizer
 * sees every byte read past it). */
static unsigned char *make(const char *header, size_t header_len, size_t n, size_t *size)
{
    *size = 8 + header_len + n;
    unsigned char *file = calloc(1, *size);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(header_len >> (8 * i));
    memcpy(file + 8, header, header_len);
    return file;
}

#define GOOD "\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}"

static void reads_a_header(void **state)
{
    (void)state;
    const char *text = "{ \"__metadata__\" : {\"format\":\"pt\\u0000\"} , \"b\\u002e1\\/\\ud83d\\ude00\":{\"shape\":[],"
                       "\"data_offsets\":[12,16],\"dtype\":\"F32\"}," GOOD ",\"e\":{\"dtype\":\"U8\",\"shape\":[0],"
                       "\"data_offsets\":[12,12]}}   ";
    size_t size;
    unsigned char *file = make(text, strlen(text), 16, &size);
    pl_error err = {0};
    pl_st_header h;
    if (pl_safetensors_parse(&h, file, size, "file", &err) != PL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(h.names.count, 3);
    assert_int_equal(h.data, 8 + strlen(text));
    assert_string_equal(pl__names_at(&h.names, 0), "b.1/\xf0\x9f\x98\x80");
    assert_int_equal(h.tensor[0].rank, 0);
    assert_int_equal(h.tensor[0].type, PL_F32);
    assert_int_equal(h.tensor[1].dim[1], 3);
    assert_int_equal(pl__names_find(&h.names, "a"), 1);
    assert_true(pl__names_find(&h.names, "c") == SIZE_MAX);
    pl_safetensors_free(&h);
    free(file);
}

static const struct {
    const char *header;
    size_t data;
    const char *message;
} refused[] = {
    {"", 0, "byte 8: expected '{'"},
    {" {}", 0, "byte 8: expected '{'"},
    {"{}", 1, "expected 0 bytes of data after the header, found 1"},
    {"{} x", 0, "expected the end, found 'x'"},
    {"{" GOOD, 12, "expected '}', found the end"},
    {"{" GOOD ",}", 12, "expected '\"'"},
    {"{" GOOD "}", 11, "tensor a: expected offsets inside the file's 11 bytes of data, found [0,12] (truncated"},
    {"{" GOOD "}", 13, "expected 12 bytes of data after the header, found 13"},
    {"{" GOOD "," GOOD "}", 12, "tensor a: listed twice"},
    {"{" GOOD ",\"b\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":[0,12]}}", 12, "overlaps another"},
    {"{" GOOD ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[10,14]}}", 14, "overlaps another"},
    {"{" GOOD ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[13,14]}}", 14,
     "tensor b: expected to begin at byte 12"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[12,0]}}", 12, "offsets inside"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,4],\"data_offsets\":[0,12]}}", 12,
     "BF16 [2,4] does not fill the 12 bytes"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "does not fill"},
    {"{\"a\":{\"dtype\":\"X9\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3,
     "tensor a: expected a dtype of the format, found \"X9\""},
    {"{\"a\":{\"dtype\":\"a-very-long-name\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, "tensor a: byte"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "does not fit 64 bits"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, "does not fill"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]}}", 0, "a number below 2^63"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0,
     "file: tensor a: byte 36: expected a whole number, found '-'"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]}}", 1, "a whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, "expected ']', found '.'"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "tensor a: dtype, shape or data_offsets missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "given twice"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
     "tensor a: expected dtype, shape and data_offsets, found \"x\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "expected ']'"},
    {"{\"a\\u0000b\":{}}", 0, "no NUL in a name"},
    {"{\"a\\ud800\":{}}", 0, "surrogate"},
    {"{\"a\\q\":{}}", 0, "an escape"},
    {"{\"a\nb\":{}}", 0, "no control byte"},
    {"{\"a\":[]}", 0, "expected '{', found '['"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "text value of __metadata__"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "listed twice"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t size;
        unsigned char *file = make(refused[i].header, strlen(refused[i].header), refused[i].data, &size);
        pl_error err = {0};
        pl_st_header h;
        assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, file, size, "file", &err));
        if (!strstr(err.message, refused[i].message) || !strstr(err.message, "file"))
            fail_msg("%s: %s", refused[i].header, err.message);
        assert_null(h.tensor);
        free(file);
    }
}

static void refuses_lengths(void **state)
{
    (void)state;
    pl_error err;
    pl_st_header h;
    unsigned char file[16] = {9};
    assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, NULL, 0, "file", &err));
    assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, file, 7, "file", &err));
    assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, file, 16, "file", &err));
    assert_non_null(strstr(err.message, "expected a header of 9 bytes, the file ends after 8"));
    memset(file, 0xff, 8);
    assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, file, 16, "file", &err));
    assert_non_null(strstr(err.message, "at most 100000000"));
}

static void refuses_a_long_name(void **state)
{
    (void)state;
    char text[600] = "{\"";
    memset(text + 2, 'n', 300);
    snprintf(text + 302, sizeof text - 302, "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    size_t size;
    unsigned char *file = make(text, strlen(text), 0, &size);
    pl_error err;
    pl_st_header h;
    assert_fails(PL_EFORMAT, &err, pl_safetensors_parse(&h, file, size, "file", &err));
    assert_non_null(strstr(err.message, "at most 255 bytes"));
    free(file);
}

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

/* Whatever the bytes: no crash, and what is accepted keeps the promises of the header. */
static void survives_mutation(void **state)
{
    (void)state;
    static const char text[] = "{\"__metadata__\":{\"format\":\"pt\"}," GOOD
                               ",\"b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[12,28]},"
                               "\"c\":{\"dtype\":\"I8\",\"shape\":[2,2],\"data_offsets\":[28,32]}}";
    static const char bytes[] = "{}[]\",:0123456789abcdtype\\u-. \n";
    const char *given = getenv("PACELINE_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20260910, s = seed * 2 + 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    int accepted = 0;
    for (int round = 0; round < 60000; round++) {
        size_t size;
        unsigned char *file = make(text, strlen(text), 32, &size);
        int changes = 1 + (int)(next(&s) % 3);
        for (int i = 0; i < changes; i++) {
            size_t at = next(&s) % (8 + strlen(text));
            uint64_t any = next(&s), often = next(&s) % 8;
            if (at < 8)
                any = often > 1 ? file[at] ^ (uint64_t)1 << any % 8 : any;
            else
                any = often ? (unsigned char)bytes[any % (sizeof bytes - 1)] : any;
            file[at] = (unsigned char)any;
        }
        pl_error err = {0};
        pl_st_header h;
        pl_status status = pl_safetensors_parse(&h, file, size, "file", &err);
        if (status == PL_OK) {
            uint64_t sum = 0;
            for (size_t i = 0; i < h.names.count; i++) {
                assert_true(h.tensor[i].begin <= h.tensor[i].end && h.tensor[i].end <= size - h.data);
                sum += h.tensor[i].end - h.tensor[i].begin;
            }
            assert_int_equal(sum, size - h.data);
            accepted++;
            pl_safetensors_free(&h);
        } else {
            assert_true(status == PL_EFORMAT || status == PL_ELIMIT);
            assert_true(err.message[0]);
        }
        free(file);
    }
    assert_in_range(accepted, 1, 59999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_header),      cmocka_unit_test(refuses),           cmocka_unit_test(refuses_lengths),
        cmocka_unit_test(refuses_a_long_name), cmocka_unit_test(survives_mutation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
