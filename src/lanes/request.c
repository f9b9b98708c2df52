#include "lanes/request.h"

pl_status pl__request_check(const pl_request *r, int context, int vocab, pl_error *err)
{
    if (r->prompt_len < 1)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: expected at least one token, found none");
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= vocab)
            return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: token %zu is %d, expected 0 to %d", i,
                                 (int)r->prompt[i], vocab - 1);
    if (r->top_logprobs < -1 || r->top_logprobs > PL_TOP_LOGPROBS_MAX || r->top_logprobs > vocab)
        return pl_fail_param(err, PL_EINVAL, "top_logprobs", "top_logprobs: expected 0 to %d, found %d",
                             PL_TOP_LOGPROBS_MAX, r->top_logprobs);
    if (r->max_tokens < 1)
        return pl_fail_param(err, PL_EINVAL, "max_tokens", "max_tokens: expected at least 1, found %lld",
                             (long long)r->max_tokens);
    if (r->prompt_len >= (size_t)context)
        return pl_fail_param(err, PL_ELIMIT, "prompt", "prompt: %zu tokens, the context holds %d with the reply",
                             r->prompt_len, context);
    if (r->max_tokens > context - (int64_t)r->prompt_len)
        return pl_fail_param(err, PL_ELIMIT, "max_tokens",
                             "max_tokens: %lld after a prompt of %zu tokens, the context holds %d",
                             (long long)r->max_tokens, r->prompt_len, context);
    if (r->think_budget > 0 && (r->think_end < 0 || r->think_end >= vocab))
        return pl_fail_param(err, PL_EINVAL, "thinking_budget",
                             "thinking_budget: this model has no token that ends a thinking block");
    return PL_OK;
}
