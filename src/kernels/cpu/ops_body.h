/* The table of one instruction set. A file defines PL__V16_..., PL__VEC_NAME and includes this. */
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vecops.h"

#include "kernels/cpu/ops_rows_body.h"

#include "kernels/cpu/ops_round_body.h"

#include "kernels/cpu/ops_attention_body.h"

#include "kernels/cpu/ops_index_body.h"

const pl__vec PL__VEC_NAME = {
    .widen = op_widen,
    .narrow = op_narrow,
    .inv_rms = op_inv_rms,
    .norm = op_norm,
    .collapse = op_collapse,
    .expand = op_expand,
    .stream_mean = op_stream_mean,
    .dots = op_dots,
    .add = op_add,
    .argmax = op_argmax,
    .gate_sums = op_gate_sums,
    .gate_add = op_gate_add,
    .fp8_row = op_fp8_row,
    .round_q8 = op_round_q8,
    .round_q4e8 = op_round_q4e8,
    .round_q4e4 = op_round_q4e4,
    .unpack_window = op_unpack_window,
    .unpack_entry = op_unpack_entry,
    .rotate = op_rotate,
    .pair_latent = op_pair_latent,
    .scores = op_scores,
    .softmax = op_softmax,
    .values = op_values,
    .key_tile = op_key_tile,
    .index_tile = op_index_tile,
};
