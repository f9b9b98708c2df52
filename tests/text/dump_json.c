/* For peer/json_peer.py: frames on standard input (4 bytes little-endian length, then a JSON text), one frame back for
 * each: 'y' and the text as pl_json_write spells it, or 'n' and the offset of the refusal in decimal. */
#include "text/json_text.h"

#include <stdio.h>
#include <stdlib.h>

static void put_frame(char verdict, const char *bytes, size_t len)
{
    size_t n = len + 1;
    for (int b = 0; b < 4; b++)
        putchar((int)(n >> 8 * b & 255));
    putchar(verdict);
    fwrite(bytes, 1, len, stdout);
}

static int answer(const char *text, size_t len)
{
    pl_error err;
    pl_json_doc *doc;
    pl_buf out;
    char offset[32];
    pl_status status = pl_json_parse(text, len, NULL, &doc, &err);
    if (status == PL_EFORMAT || status == PL_ELIMIT) {
        put_frame('n', offset, (size_t)snprintf(offset, sizeof offset, "%lld", (long long)err.offset));
        return 0;
    }
    pl_buf_init(&out, (size_t)1 << 30, "dump");
    if (status == PL_OK)
        status = pl_json_write(pl_json_root(doc), &out, &err);
    if (status == PL_OK)
        put_frame('y', out.data, out.len);
    else
        fprintf(stderr, "%s\n", err.message);
    pl_buf_free(&out);
    pl_json_free(doc);
    return status == PL_OK ? 0 : 1;
}

int main(void)
{
    unsigned char head[4];
    while (fread(head, 1, 4, stdin) == 4) {
        size_t len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *text = malloc(len + 1);
        if (!text || fread(text, 1, len, stdin) != len || answer(text, len) != 0) {
            free(text);
            return 1;
        }
        free(text);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
