/* See prompts.h. */
#include "bench/prompts.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static pl_status wrong(const char *path, const char *group, const char *what, pl_error *err)
{
    return pl_fail(err, PL_EFORMAT, "%s: group \"%.60s\": %s", path, group, what);
}

static pl_status read_prompt(pl_bench_prompt *prompt, const json_t *json, const char *path, const char *group,
                             pl_error *err)
{
    const char *form = json_string_value(json_object_get(json, "form"));
    prompt->name = json_string_value(json_object_get(json, "name"));
    prompt->text = json_string_value(json_object_get(json, "prompt"));
    if (!prompt->name || !*prompt->name || strlen(prompt->name) > PL_BENCH_NAME_MAX || strchr(prompt->name, ','))
        return wrong(path, group, "every prompt needs a name of 1 to 63 bytes without a comma", err);
    if (!prompt->text || !*prompt->text)
        return wrong(path, group, "every prompt needs a text \"prompt\" that is not empty", err);
    prompt->chat = form && strcmp(form, "chat") == 0;
    if (!prompt->chat && !(form && strcmp(form, "completion") == 0))
        return wrong(path, group, "\"form\" of a prompt is \"chat\" or \"completion\"", err);
    return PL_OK;
}

static pl_status read_group(pl_bench_set *set, const char *name, const json_t *list, const char *path, pl_error *err)
{
    set->name = name;
    if (strlen(name) > PL_BENCH_NAME_MAX || !*name || strchr(name, ','))
        return wrong(path, name, "its name must have 1 to 63 bytes and no comma", err);
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > PL_BENCH_SET_MAX)
        return wrong(path, name, "expected a list of 1 to 256 prompts", err);
    for (set->n = 0; set->n < (int)json_array_size(list); set->n++)
        PL_TRY(read_prompt(&set->prompt[set->n], json_array_get(list, (size_t)set->n), path, name, err));
    return PL_OK;
}

pl_status pl_bench_prompts_parse(pl_bench_prompts *p, const char *path, const char *text, size_t n, pl_error *err)
{
    *p = (pl_bench_prompts){0};
    json_error_t at;
    p->file = json_loadb(text, n, JSON_REJECT_DUPLICATES, &at);
    if (!p->file)
        return pl_fail_at(err, PL_EFORMAT, at.position, "%s: line %d: %s", path, at.line, at.text);
    json_t *groups = json_object_get(p->file, "groups");
    size_t count = json_object_size(groups);
    if (count == 0 || count > PL_BENCH_SETS_MAX)
        return pl_fail(err, PL_EFORMAT, "%s: expected an object \"groups\" of 1 to %d groups", path, PL_BENCH_SETS_MAX);
    p->set = calloc(count, sizeof *p->set);
    if (!p->set)
        return pl_fail(err, PL_ENOMEM, "no memory for the prompts");
    const char *name;
    json_t *list;
    json_object_foreach(groups, name, list) PL_TRY(read_group(&p->set[p->sets++], name, list, path, err));
    return PL_OK;
}

pl_status pl_bench_prompts_read(pl_bench_prompts *p, const char *path, pl_error *err)
{
    pl_buf text;
    *p = (pl_bench_prompts){0};
    pl_buf_init(&text, PL_BENCH_PROMPTS_FILE_MAX, "prompt file");
    pl_status status = pl_file_read(&text, path, err);
    if (status == PL_OK)
        status = pl_bench_prompts_parse(p, path, text.data ? text.data : "", text.len, err);
    pl_buf_free(&text);
    return status;
}

void pl_bench_prompts_free(pl_bench_prompts *p)
{
    free(p->set);
    json_decref(p->file);
    *p = (pl_bench_prompts){0};
}

bool pl_bench_prompts_find(const pl_bench_prompts *p, const char *name, pl_bench_set *set)
{
    for (int i = 0; i < p->sets; i++)
        if (strcmp(p->set[i].name, name) == 0) {
            *set = p->set[i];
            return true;
        }
    for (int i = 0; i < p->sets; i++)
        for (int j = 0; j < p->set[i].n; j++)
            if (strcmp(p->set[i].prompt[j].name, name) == 0) {
                *set = (pl_bench_set){.name = p->set[i].prompt[j].name, .prompt = {p->set[i].prompt[j]}, .n = 1};
                return true;
            }
    return false;
}
