#include "text/pretokenize.h"

#include "base/utf8.h"
#include "text/unicode.h"

/* As they stand in the file: the CR and LF of the third are real ones, the ranges of the second real characters. */
const char *const pl__split_regex[3] = {
    "\\p{N}{1,3}", "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+",
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
     "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), /* one string: clang asks whether a comma is missing */
};

/* Steps 1 and 2 make walls that nothing in step 3 sees across: what is behind one reads as WALL, as the end does. */
enum { WALL = -1 };

typedef struct peeked {
    int cls; /* pl_uclass, or WALL */
    int len; /* bytes */
} peeked;

static bool is_cjk(uint32_t cp)
{
    return cp >= 0x3040 && (cp <= 0x30ff || (cp >= 0x4e00 && cp <= 0x9fa5));
}

static uint32_t code_point(const pl_splitter *split, size_t at, int *len)
{
    uint32_t cp = (unsigned char)split->text[at];
    *len = 1;
    if (cp >= 0x80) {
        int n = pl_utf8_next(split->text + at, split->len - at, &cp);
        if (n < 0) /* cannot be in a text that was checked; a lone byte then counts as no letter */
            cp = 0xfffe, n = -n;
        *len = n;
    }
    return cp;
}

/* The character at `at` as step 3 sees it from inside a piece of step 2 of the given kind. */
static peeked peek(const pl_splitter *split, size_t at, bool cjk)
{
    if (at >= split->len)
        return (peeked){WALL, 0};
    int len;
    uint32_t cp = code_point(split, at, &len);
    pl_uclass cls = pl_unicode_class(cp);
    if (cls == PL_U_NUMBER || is_cjk(cp) != cjk)
        return (peeked){WALL, len};
    return (peeked){(int)cls, len};
}

static bool is_letter(peeked p)
{
    return p.cls == PL_U_LETTER || p.cls == PL_U_MARK;
}

static bool is_ascii_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* \p{N}{1,3} */
static size_t numbers(const pl_splitter *split, size_t at)
{
    for (int i = 0; i < 3 && at < split->len; i++) {
        int len;
        if (pl_unicode_class(code_point(split, at, &len)) != PL_U_NUMBER)
            break;
        at += (size_t)len;
    }
    return at;
}

static size_t letters(const pl_splitter *split, size_t at, bool cjk)
{
    for (peeked p = peek(split, at, cjk); is_letter(p); p = peek(split, at, cjk))
        at += (size_t)p.len;
    return at;
}

/* [\p{P}\p{S}]+[\r\n]* */
static size_t puncts(const pl_splitter *split, size_t at, bool cjk)
{
    peeked p = peek(split, at, cjk);
    for (; p.cls == PL_U_PUNCT; p = peek(split, at, cjk))
        at += (size_t)p.len;
    for (; p.cls == PL_U_NEWLINE; p = peek(split, at, cjk))
        at += (size_t)p.len;
    return at;
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+ : up to the last newline of the run; else the run without its last character, which is
 * left to what follows; else, where nothing follows or there is but one character, the run. */
static size_t blanks(const pl_splitter *split, size_t at, bool cjk)
{
    size_t start = at, last = at, newline = 0;
    peeked p = peek(split, at, cjk);
    while (p.cls == PL_U_SPACE || p.cls == PL_U_NEWLINE) {
        last = at;
        at += (size_t)p.len;
        if (p.cls == PL_U_NEWLINE)
            newline = at;
        p = peek(split, at, cjk);
    }
    if (newline)
        return newline;
    return p.cls == WALL || last == start ? at : last;
}

/* Characters that no alternative matches. The last of them goes to the letters behind it: [^\r\n\p{L}\p{P}\p{S}]? */
static size_t gap(const pl_splitter *split, size_t at, bool cjk)
{
    size_t last = at;
    peeked p = peek(split, at, cjk);
    for (; p.cls == PL_U_OTHER; p = peek(split, at, cjk)) {
        last = at;
        at += (size_t)p.len;
    }
    return is_letter(p) ? last : at;
}

static size_t piece_end(const pl_splitter *split)
{
    size_t at = split->at;
    int len;
    uint32_t cp = code_point(split, at, &len);
    pl_uclass cls = pl_unicode_class(cp);
    bool cjk = is_cjk(cp);
    size_t behind = at + (size_t)len;
    switch (cls) {
    case PL_U_NUMBER: return numbers(split, at);
    case PL_U_LETTER:
    case PL_U_MARK: return letters(split, behind, cjk);
    case PL_U_PUNCT:
        if (cp < 0x80 && behind < split->len && is_ascii_alpha(split->text[behind])) {
            do
                behind++;
            while (behind < split->len && is_ascii_alpha(split->text[behind]));
            return behind;
        }
        return puncts(split, at, cjk);
    case PL_U_NEWLINE: return blanks(split, at, cjk);
    case PL_U_SPACE:
    case PL_U_OTHER: break;
    }
    peeked next = peek(split, behind, cjk);
    if (is_letter(next))
        return letters(split, behind, cjk);
    if (cp == ' ' && next.cls == PL_U_PUNCT)
        return puncts(split, behind, cjk);
    return cls == PL_U_SPACE ? blanks(split, at, cjk) : gap(split, at, cjk);
}

void pl_splitter_init(pl_splitter *split, const char *text, size_t len)
{
    *split = (pl_splitter){.text = text, .len = len};
}

bool pl_splitter_next(pl_splitter *split, size_t *start, size_t *end)
{
    if (split->at >= split->len)
        return false;
    *start = split->at;
    *end = split->at = piece_end(split);
    return true;
}
