/* The class of a code point in Unicode 16.0, as far as the tokenizer's splits ask. */
#ifndef PL_TEXT_UNICODE_H
#define PL_TEXT_UNICODE_H

#include <stdint.h>

typedef enum pl_uclass {
    PL_U_OTHER = 0, /* controls, formats, private use, unassigned */
    PL_U_LETTER,    /* general category L */
    PL_U_MARK,      /* M */
    PL_U_NUMBER,    /* N */
    PL_U_PUNCT,     /* P or S: the splits never tell them apart */
    PL_U_SPACE,     /* White_Space, but for CR and LF */
    PL_U_NEWLINE    /* CR, LF */
} pl_uclass;

/* Two levels: block of 256 code points, then two classes a byte, the even code point in the low half. */
extern const unsigned char pl__unicode_index[0x110000 / 256];
extern const unsigned char pl__unicode_blocks[];

/* The class of cp, at most U+10FFFF. */
static inline pl_uclass pl_unicode_class(uint32_t cp)
{
    unsigned char two = pl__unicode_blocks[pl__unicode_index[cp >> 8] * 128u + (cp >> 1 & 127)];
    return (pl_uclass)(two >> ((cp & 1) << 2) & 15);
}

#endif
