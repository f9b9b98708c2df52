/* A tokenizer.json of any bytes: read or refused in one line; what was read encodes and decodes a text to itself. */
#include "text/tokenizer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "abc [x]ab \xe4\xbd\xa0\xe5\xa5\xbd 123\r\n\0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    pl_tokenizer *tok;
    pl_error err = {.offset = -2};
    pl_status status = pl_tokenizer_parse(&tok, (const char *)data, size, "fuzz", &err);
    if (status != PL_OK) {
        if (tok || err.status != status || !err.message[0] || strpbrk(err.message, "\r\n"))
            __builtin_trap();
        return 0;
    }
    for (int match = 0; match < 2; match++) {
        pl_ids ids;
        pl_buf back;
        pl_ids_init(&ids, PL_IDS_MAX);
        pl_buf_init(&back, 1 << 20, "text");
        if (pl_tokenizer_encode(tok, text, sizeof text, match != 0, &ids, &err) != PL_OK ||
            pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err) != PL_OK || back.len != sizeof text ||
            memcmp(back.data, text, sizeof text) != 0)
            __builtin_trap();
        pl_ids_free(&ids);
        pl_buf_free(&back);
    }
    pl_tokenizer_close(tok);
    return 0;
}
