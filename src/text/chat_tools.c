/* Tools and calls: the "## Tools" block of a system message and the DSML block of an assistant's calls. */
#include "text/chat_int.h"

#include <string.h>

/* Wire text: every byte counts. What stands between is one JSON object a line. */
static const char tools_head[] =
    "## Tools\n"
    "\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "
    "\"<｜DSML｜ calls>\" block like the following:\n"
    "\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n"
    "\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, "
    "arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n"
    "\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside "
    "<think>...</think> BEFORE any tool calls or final response.\n"
    "\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n"
    "\n"
    "### Available Tool Schemas\n"
    "\n";

static const char tools_tail[] =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";

pl_status pl__put_own(pl_segments *out, const char *text, pl_error *err)
{
    static const char *const marks[] = {PL__DSML, PL__THINK, PL__END_THINK};
    while (*text) {
        const char *first = NULL, *mark = NULL;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const char *at = strstr(text, marks[i]);
            if (at && (!first || at < first)) {
                first = at;
                mark = marks[i];
            }
        }
        if (!mark)
            return pl_segments_text(out, text, strlen(text), err);
        PL_TRY(pl_segments_text(out, text, (size_t)(first - text), err));
        PL_TRY(pl_segments_control(out, mark, err));
        text = first + strlen(mark);
    }
    return PL_OK;
}

static pl_status flush(pl_segments *out, pl_buf *json, pl_error *err)
{
    return pl_segments_text(out, json->data, json->len, err);
}

pl_status pl__put_json(pl_segments *out, const pl_json *value, pl_error *err)
{
    pl_buf json;
    pl_buf_init(&json, out->text.cap, out->text.name);
    pl_status status = pl_json_write(value, &json, err);
    if (status == PL_OK)
        status = flush(out, &json, err);
    pl_buf_free(&json);
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static const char *find(const char *text, size_t len, const char *what)
{
    return len ? memmem(text, len, what, strlen(what)) : NULL;
}

/* The namespace of an owner: a string, or an object with a name and perhaps a description. An empty one is none. */
static const pl_json *namespace_of(const pl_json *owner)
{
    const pl_json *ns = pl_json_get_set(owner, "namespace");
    if (pl_json_equals(ns, ""))
        ns = NULL;
    return ns ? ns : pl_json_get_set(pl_json_get(owner, "function"), "namespace");
}

const char *pl__function_name(const pl_json *owner, pl__name *out)
{
    const pl_json *name = pl_json_get(pl_json_get(owner, "function"), "name");
    const pl_json *ns = namespace_of(owner);
    *out = (pl__name){0};
    if (!pl_json_is(name, PL_JSON_STRING))
        return "must be a string";
    out->name = pl_json_string(name, &out->name_len);
    if (ns) {
        if (pl_json_is(ns, PL_JSON_OBJECT))
            ns = pl_json_get(ns, "name");
        if (!pl_json_is(ns, PL_JSON_STRING))
            return "must have a namespace that is a string or an object with a name";
        out->ns = pl_json_string(ns, &out->ns_len);
        if (find(out->ns, out->ns_len, "::"))
            return "must have a namespace without '::'";
    }
    const char *colons = find(out->name, out->name_len, "::");
    if (!colons)
        return NULL;
    size_t prefix = (size_t)(colons - out->name);
    if (!prefix)
        return "must have a namespace in front of '::'";
    if (out->ns_len && (out->ns_len != prefix || memcmp(out->ns, out->name, prefix) != 0))
        return "must not name another namespace than the namespace field";
    out->ns = out->name;
    out->ns_len = prefix;
    out->name += prefix + 2;
    out->name_len -= prefix + 2;
    return find(out->name, out->name_len, "::") ? "must hold '::' at most once" : NULL;
}

static pl_status qualified(const pl__name *name, pl_buf *to, pl_error *err)
{
    if (name->ns_len) {
        PL_TRY(pl_buf_add(to, name->ns, name->ns_len, err));
        PL_TRY(pl_buf_adds(to, "::", err));
    }
    return pl_buf_add(to, name->name, name->name_len, err);
}

/* ---- the tools block -------------------------------------------------------------------------------------------- */

static pl_status member(pl_buf *to, bool first, const char *key, const pl_buf *value, pl_error *err)
{
    if (!first)
        PL_TRY(pl_buf_adds(to, ", ", err));
    PL_TRY(pl_json_write_string(key, strlen(key), to, err));
    PL_TRY(pl_buf_adds(to, ": ", err));
    return pl_json_write_string(value->data ? value->data : "", value->len, to, err);
}

/* Description of a function in a described namespace: the namespace's, a newline, its own. Empty when there is none of
 * the former. */
static pl_status describe(const pl_json *tool, pl_buf *to, pl_error *err)
{
    size_t len;
    const pl_json *of_ns = pl_json_get(namespace_of(tool), "description");
    const pl_json *own = pl_json_get(pl_json_get(tool, "function"), "description");
    if (!pl_json_is(of_ns, PL_JSON_STRING) || pl_json_equals(of_ns, ""))
        return PL_OK;
    const char *text = pl_json_string(of_ns, &len);
    PL_TRY(pl_buf_add(to, text, len, err));
    PL_TRY(pl_buf_addc(to, '\n', err));
    if (!pl_json_is(own, PL_JSON_STRING))
        return PL_OK;
    text = pl_json_string(own, &len);
    return pl_buf_add(to, text, len, err);
}

/* The function object as it came, but for its name (qualified), its namespace (gone) and perhaps its description. */
static pl_status write_tool(const pl_json *tool, const pl_buf *name, const pl_buf *text, pl_buf *to, pl_error *err)
{
    bool first = true, described = !text->len;
    PL_TRY(pl_buf_addc(to, '{', err));
    for (pl_json_iter it = {0}; pl_json_each(pl_json_get(tool, "function"), &it);) {
        if (pl_json_equals(it.key, "namespace"))
            continue;
        if (pl_json_equals(it.key, "name")) {
            PL_TRY(member(to, first, "name", name, err));
        } else if (text->len && pl_json_equals(it.key, "description")) {
            PL_TRY(member(to, first, "description", text, err));
            described = true;
        } else {
            if (!first)
                PL_TRY(pl_buf_adds(to, ", ", err));
            PL_TRY(pl_json_write(it.key, to, err));
            PL_TRY(pl_buf_adds(to, ": ", err));
            PL_TRY(pl_json_write(it.value, to, err));
        }
        first = false;
    }
    if (!described)
        PL_TRY(member(to, first, "description", text, err));
    return pl_buf_addc(to, '}', err);
}

static pl_status put_tool(pl_segments *out, const pl_json *tool, pl_error *err)
{
    pl__name parts;
    pl_buf name, text, json;
    const char *fault = pl__function_name(tool, &parts);
    if (fault)
        return pl_fail_param(err, PL_EINVAL, "tools", "the name of a tool %s", fault);
    pl_buf_init(&name, out->text.cap, out->text.name);
    pl_buf_init(&text, out->text.cap, out->text.name);
    pl_buf_init(&json, out->text.cap, out->text.name);
    pl_status status = qualified(&parts, &name, err);
    if (status == PL_OK)
        status = describe(tool, &text, err);
    if (status == PL_OK)
        status = write_tool(tool, &name, &text, &json, err);
    if (status == PL_OK)
        status = flush(out, &json, err);
    pl_buf_free(&name);
    pl_buf_free(&text);
    pl_buf_free(&json);
    return status;
}

pl_status pl__put_tools(pl_segments *out, const pl_json *tools, pl_error *err)
{
    PL_TRY(pl__put_own(out, tools_head, err));
    for (pl_json_iter it = {0}; pl_json_each(tools, &it);) {
        if (it.index)
            PL_TRY(pl_segments_text(out, "\n", 1, err));
        PL_TRY(put_tool(out, it.value, err));
    }
    return pl__put_own(out, tools_tail, err);
}

/* ---- the calls block -------------------------------------------------------------------------------------------- */

static pl_status put_parameter(pl_segments *out, const char *key, size_t key_len, const pl_json *value, pl_error *err)
{
    bool string = pl_json_is(value, PL_JSON_STRING);
    size_t len;
    const char *text = pl_json_string(value, &len);
    PL_TRY(pl__put_own(out, "<｜DSML｜ parameter name=\"", err));
    PL_TRY(pl_segments_text(out, key, key_len, err));
    PL_TRY(pl__put_own(out, string ? "\" string=\"true\">" : "\" string=\"false\">", err));
    if (string)
        PL_TRY(pl_segments_text(out, text, len, err));
    else
        PL_TRY(pl__put_json(out, value, err));
    return pl__put_own(out, "</｜DSML｜ parameter>", err);
}

static pl_status put_parameters(pl_segments *out, const pl_json *arguments, pl_error *err)
{
    for (pl_json_iter it = {0}; pl_json_each(arguments, &it);) {
        size_t len;
        const char *key = pl_json_string(it.key, &len);
        if (it.index)
            PL_TRY(pl_segments_text(out, "\n", 1, err));
        PL_TRY(put_parameter(out, key, len, it.value, err));
    }
    return PL_OK;
}

/* Arguments come as an object, as its JSON text, or as that text encoded once more; anything else is one parameter. */
static pl_status put_arguments(pl_segments *out, const pl_json *given, pl_error *err)
{
    pl_json_doc *docs[2] = {NULL, NULL};
    const pl_json *value = given;
    for (int i = 0; i < 2 && pl_json_is(value, PL_JSON_STRING); i++) {
        size_t len;
        const char *text = pl_json_string(value, &len);
        pl_status status = pl_json_parse(text, len, NULL, &docs[i], NULL);
        if (status == PL_ENOMEM) {
            pl_json_free(docs[0]);
            return pl_fail(err, PL_ENOMEM, "no memory for the arguments of a call");
        }
        if (status != PL_OK)
            break;
        value = pl_json_root(docs[i]);
    }
    pl_status status = PL_OK;
    if (pl_json_is(value, PL_JSON_OBJECT))
        status = put_parameters(out, value, err);
    else if (given)
        status = put_parameter(out, "arguments", strlen("arguments"), given, err);
    pl_json_free(docs[0]);
    pl_json_free(docs[1]);
    return status;
}

static pl_status put_call(pl_segments *out, const pl_json *call, pl_error *err)
{
    pl__name name;
    if (pl__function_name(call, &name)) {
        /* A name that breaks the rules stays as it is: the model wrote it, a refusal would lock the conversation. */
        name = (pl__name){0};
        name.name = pl_json_string(pl_json_get(pl_json_get(call, "function"), "name"), &name.name_len);
    }
    PL_TRY(pl__put_own(out, "<｜DSML｜ invoke name=\"", err));
    if (name.ns_len) {
        PL_TRY(pl_segments_text(out, name.ns, name.ns_len, err));
        PL_TRY(pl_segments_text(out, "::", 2, err));
    }
    PL_TRY(pl_segments_text(out, name.name, name.name_len, err));
    PL_TRY(pl__put_own(out, "\">\n", err));
    PL_TRY(put_arguments(out, pl_json_get(pl_json_get(call, "function"), "arguments"), err));
    return pl__put_own(out, "\n</｜DSML｜ invoke>", err);
}

pl_status pl__put_calls(pl_segments *out, const pl_json *calls, pl_error *err)
{
    PL_TRY(pl__put_own(out, "\n\n<｜DSML｜ calls>\n", err));
    for (pl_json_iter it = {0}; pl_json_each(calls, &it);) {
        if (it.index)
            PL_TRY(pl_segments_text(out, "\n", 1, err));
        PL_TRY(put_call(out, it.value, err));
    }
    return pl__put_own(out, "\n</｜DSML｜ calls>", err);
}
