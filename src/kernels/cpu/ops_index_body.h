/* Index scores of sixteen keys. Included once an instruction set by ops_body.h.
 *
 * Twice an E2M1 value is an integer of at most 12, so a block of 32 products sums to an integer of at most
 * 32 * 144 = 4608: exact in integers and in float32 alike, in any order. The block sums, times the two powers of two,
 * are then added in block order by one fused multiply-add each: that is the order of this operation. */

static void op_key_tile(unsigned char *code, float *scale, const unsigned char *const key[PL__KEY_LANES], int blocks)
{
    enum { BLOCK_BYTES = 16, QUAD_ROW = 4 * PL__KEY_LANES };
    for (int b = 0; b < blocks; b++) {
        for (int l = 0; l < PL__KEY_LANES; l++) {
            unsigned char *to = code + (size_t)b * 8 * QUAD_ROW + (size_t)l * 4;
            const unsigned char *from = key[l] + (size_t)b * BLOCK_BYTES;
            for (int w = 0; w < 4; w++)
                memcpy(to + (size_t)w * 2 * QUAD_ROW, from + (size_t)w * 4, 4);
            scale[b * PL__KEY_LANES + l] = power_of_two(key[l][(size_t)blocks * BLOCK_BYTES + (size_t)b]);
        }
    }
    /* each word of four packed bytes is now in the place of its even quad: spread it to the even and the odd one */
    for (int w = 0; w < blocks * 4; w++)
        v16_spread_e2m1(code + (size_t)w * 2 * QUAD_ROW);
}

static void op_index_tile(pl_bf16 *score, const pl__index_query *q, const pl__key_tile *tile)
{
    v16 sum = v16_zero(), zero = v16_zero();
    for (int h = 0; h < q->heads; h++) {
        v16 dot = v16_zero();
        for (int b = 0; b < q->blocks; b++) {
            int at = h * q->blocks + b;
            v16 whole = v16_idot(tile->code + (size_t)b * 8 * 64, q->code + (size_t)at * 32, q->bias[at]);
            dot = v16_fma(whole, v16_mul(v16_set1(q->scale[at]), v16_load(tile->scale + b * 16)), dot);
        }
        v16 term = v16_mul(v16_max(v16_round_bf(dot), zero), v16_set1(q->weight[h]));
        sum = v16_add(sum, v16_round_bf(term));
    }
    v16_store_bf(score, sum);
}
