/* Ask the model that comes with Paceline a question and print the reply as it is made.
 *
 *     hello [MODEL_DIR [QUESTION]]
 */
#include "paceline.h"

#include <stdio.h>
#include <string.h>

static int fail(const char *doing, const pl_error *err)
{
    fprintf(stderr, "%s: %s (%s)\n", doing, err->message, pl_status_name(err->status));
    return 1;
}

/* Print the reply's events until its last one. */
static int print_reply(pl_job *job)
{
    pl_error err;
    pl_event event;
    do {
        if (pl_poll(job, &event, -1, &err) != PL_OK)
            return fail("poll", &err);
        fwrite(event.text, 1, event.text_len, stdout);
        fflush(stdout);
    } while (event.kind != PL_EVENT_FINISHED);
    if (event.reason == PL_REASON_ERROR)
        return fail("reply", event.error);
    printf("\n\n%zu tokens, token_sha %s\n", event.tokens, event.token_sha);
    return 0;
}

int main(int argc, char **argv)
{
    pl_error err;
    pl_options options;
    pl_options_init(&options);
    options.model_dir = argc > 1 ? argv[1] : "models/nano";
    pl_instance *instance;
    if (pl_open(&instance, &options, &err) != PL_OK)
        return fail("open", &err);

    pl_query query;
    pl_query_init(&query);
    query.text = argc > 2 ? argv[2] : "What does the word \"harbour\" mean?";
    query.text_len = strlen(query.text);
    query.temperature = 0;
    query.max_tokens = 64;
    pl_job *job;
    int code = 1;
    if (pl_submit(instance, &query, &job, &err) != PL_OK)
        fail("submit", &err);
    else
        code = print_reply(job);
    pl_job_close(job);
    pl_close(instance);
    return code;
}
