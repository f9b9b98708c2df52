/* The splits, against the three regular expressions spelled out naively: each alternative, with backtracking. */
#include "text/pretokenize.h"
#include "text/tokenizer_check.h"
#include "text/unicode.h"

enum { MAX_CHARS = 256 };

/* A piece as code points. */
typedef struct run {
    uint32_t cp[MAX_CHARS];
    int n;
} run;

static bool is(const run *r, int i, const char *classes)
{
    if (i >= r->n)
        return false;
    uint32_t c = r->cp[i];
    pl_uclass u = pl_unicode_class(c);
    for (; *classes; classes++) {
        switch (*classes) {
        case 'L':
            if (u == PL_U_LETTER)
                return true;
            break;
        case 'M':
            if (u == PL_U_MARK)
                return true;
            break;
        case 'N':
            if (u == PL_U_NUMBER)
                return true;
            break;
        case 'P':
            if (u == PL_U_PUNCT)
                return true;
            break;
        case 's':
            if (u == PL_U_SPACE || u == PL_U_NEWLINE)
                return true;
            break;
        case 'n':
            if (c == '\r' || c == '\n')
                return true;
            break;
        case 'a':
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
                return true;
            break;
        case '!':
            if (c < 0x80 && u == PL_U_PUNCT)
                return true;
            break;
        case 'c':
            if ((c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff))
                return true;
            break;
        case ' ':
            if (c == ' ')
                return true;
            break;
        }
    }
    return false;
}

/* [classes]{min,} from i, greedy: the end, or -1. */
static int many(const run *r, int i, const char *classes, int min)
{
    int start = i;
    while (is(r, i, classes))
        i++;
    return i - start >= min ? i : -1;
}

/* Step 3 at position i: the end of the first alternative that matches, or -1. */
static int match3(const run *r, int i)
{
    int end;
    if (is(r, i, "!") && (end = many(r, i + 1, "a", 1)) > 0)
        return end;
    if (i < r->n && !is(r, i, "nLP") && (end = many(r, i + 1, "LM", 1)) > 0)
        return end;
    if ((end = many(r, i, "LM", 1)) > 0)
        return end;
    if (is(r, i, " ") && (end = many(r, i + 1, "P", 1)) > 0)
        return many(r, end, "n", 0);
    if ((end = many(r, i, "P", 1)) > 0)
        return many(r, end, "n", 0);
    int blanks = many(r, i, "s", 0);
    for (int give = blanks; give >= i; give--) /* \s* gives back until [\r\n]+ matches */
        if ((end = many(r, give, "n", 1)) > 0)
            return end;
    for (int give = blanks; give > i; give--) /* (?!\S) */
        if (give == r->n || is(r, give, "s"))
            return give;
    return blanks > i ? blanks : -1;
}

static int match2(const run *r, int i)
{
    return many(r, i, "c", 1);
}

static int match1(const run *r, int i)
{
    int end = i;
    while (end - i < 3 && is(r, end, "N"))
        end++;
    return end > i ? end : -1;
}

/* Cut r by step `step` and the ones behind it; lengths in code points are appended to cuts. */
static void cut(const run *r, int step, int *cuts, int *count)
{
    static int (*const match[])(const run *, int) = {match1, match2, match3};
    if (step == 3) {
        cuts[(*count)++] = r->n;
        return;
    }
    for (int from = 0, at = 0; from < r->n;) {
        int end = at < r->n ? match[step](r, at) : at;
        if (end < 0) {
            at++;
            continue;
        }
        run part = {.n = at - from};
        memcpy(part.cp, r->cp + from, (size_t)part.n * sizeof *part.cp);
        if (part.n > 0)
            cut(&part, step + 1, cuts, count);
        part.n = end - at;
        memcpy(part.cp, r->cp + at, (size_t)part.n * sizeof *part.cp);
        if (part.n > 0)
            cut(&part, step + 1, cuts, count);
        from = at = end;
    }
}

static void check_text(const char *text, size_t len)
{
    run whole = {0};
    for (size_t at = 0; at < len;) {
        int n = pl_utf8_next(text + at, len - at, &whole.cp[whole.n]);
        assert_true(n > 0 && whole.n < MAX_CHARS);
        whole.n++;
        at += (size_t)n;
    }
    int cuts[MAX_CHARS], count = 0, piece = 0;
    cut(&whole, 0, cuts, &count);
    pl_splitter split;
    size_t start, end, expected = 0;
    pl_splitter_init(&split, text, len);
    while (pl_splitter_next(&split, &start, &end)) {
        assert_int_equal(start, expected);
        assert_true(end > start && end <= len && piece < count);
        int chars = 0;
        for (size_t at = start; at < end; at++)
            chars += (text[at] & 0xc0) != 0x80;
        if (chars != cuts[piece])
            fail_msg("piece %d of \"%.*s\": expected %d characters, found %d", piece, (int)len, text, cuts[piece],
                     chars);
        piece++;
        expected = end;
    }
    assert_int_equal(expected, len);
    assert_int_equal(piece, count);
}

static void test_random_texts(void **state)
{
    (void)state;
    uint64_t random = random_seed();
    for (int i = 0; i < 40000; i++) {
        char text[MAX_CHARS];
        size_t len = 0, most = 1 + random_next(&random) % 24;
        for (size_t n = 0; n < most; n++)
            len += (size_t)random_char(&random, text + len);
        check_text(text, len);
    }
}

/* Every text of up to 5 characters over one character of each kind: all neighbourhoods there are. */
static void test_every_short_text(void **state)
{
    (void)state;
    static const char *const kinds[] = {"a", "\u0301", "7", ".", " ", "\t", "\n", "\x01", "世", "・", "é", "\u200b"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int length = 1; length <= 5; length++) {
        int total = 1;
        for (int i = 0; i < length; i++)
            total *= KINDS;
        for (int n = 0; n < total; n++) {
            char text[32];
            size_t len = 0;
            for (int i = 0, left = n; i < length; i++, left /= KINDS) {
                memcpy(text + len, kinds[left % KINDS], strlen(kinds[left % KINDS]));
                len += strlen(kinds[left % KINDS]);
            }
            check_text(text, len);
        }
    }
}

static void check_pieces(const char *text, const char *pieces)
{
    pl_splitter split;
    size_t start, end;
    pl_buf shown;
    pl_error err;
    pl_buf_init(&shown, 1000, "pieces");
    pl_splitter_init(&split, text, strlen(text));
    while (pl_splitter_next(&split, &start, &end)) {
        pl_buf_adds(&shown, shown.len ? "|" : "", &err);
        pl_buf_add(&shown, text + start, end - start, &err);
    }
    assert_string_equal(shown.data, pieces);
    pl_buf_free(&shown);
}

static void test_named_cases(void **state)
{
    (void)state;
    check_pieces("  x", " | x");
    check_pieces("x \n y", "x| \n| y");
    check_pieces("x   ", "x|   ");
    check_pieces("\t\tx", "\t|\tx");
    check_pieces(".foo ..foo _foo", ".foo| ..|foo| _|foo");
    check_pieces("・\n。\n", "・|\n|。\n"); /* the wall of step 2 is between */
    check_pieces("x !\r\n\r\ny", "x| !\r\n\r\n|y");
    check_pieces("I don't", "I| don|'t");
    check_pieces("1.5e10", "1|.|5|e|10");
    check_pieces("1234567", "123|456|7");
    check_pieces("你好，世界", "你好|，|世界");
    check_pieces("カ・ナ", "カ|・|ナ");
    check_pieces("半角ｶﾅ ①②③④", "半角|ｶﾅ| |①②③|④");
    check_pieces("x  1", "x|  |1");
    check_pieces("a\u200db", "a|\u200db");
    check_pieces("a\u200d\u200db", "a|\u200d|\u200db");
    check_pieces("\u200d1", "\u200d|1");
    check_pieces("e\u0301", "e\u0301");
    check_pieces("!\nA", "!\n|A");
    check_pieces("世\n", "世|\n");
}

static void test_nul_is_a_character(void **state)
{
    (void)state;
    check_text("x\0y", 3);
    check_text("\0\0", 2);
    check_text("", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_cases),
        cmocka_unit_test(test_every_short_text),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_nul_is_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
