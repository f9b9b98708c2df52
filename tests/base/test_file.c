/* Files: mapped, read under a cap, written whole or not at all. */
#include "base/check.h"
#include "base/file.h"
#include "base/mapped.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64];

static char *in_folder(const char *name)
{
    char *path = pl_path_join(folder, name);
    assert_non_null(path);
    return path;
}

static int entries(void)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* "." and ".." */
}

static void expect_content(const char *path, const char *content)
{
    pl_buf buf;
    pl_buf_init(&buf, 4096, "test");
    assert_int_equal(pl_file_read(&buf, path, NULL), PL_OK);
    assert_string_equal(buf.data, content);
    pl_buf_free(&buf);
}

static int open_folder(void **state)
{
    (void)state;
    make_folder(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *e; (e = readdir(dir));)
        unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    return rmdir(folder);
}

static void writes_and_reads_back(void **state)
{
    (void)state;
    char *path = in_folder("a");
    assert_int_equal(pl_file_put(path, "one", 3, NULL), PL_OK);
    expect_content(path, "one");
    assert_int_equal(pl_file_put(path, "two!", 4, NULL), PL_OK);
    expect_content(path, "two!");
    assert_int_equal(entries(), 1);
    pl_map map;
    assert_int_equal(pl_map_open(&map, path, NULL), PL_OK);
    assert_int_equal(map.size, 4);
    assert_memory_equal(map.data, "two!", 4);
    pl_map_close(&map);
    assert_null(map.data);
    free(path);
}

static void the_new_file_follows_the_umask(void **state)
{
    (void)state;
    char *path = in_folder("mode");
    mode_t old = umask(027);
    assert_int_equal(pl_file_put(path, "x", 1, NULL), PL_OK);
    umask(old);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    free(path);
}

static void maps_an_empty_file(void **state)
{
    (void)state;
    char *path = in_folder("empty");
    assert_int_equal(pl_file_put(path, "", 0, NULL), PL_OK);
    pl_map map;
    assert_int_equal(pl_map_open(&map, path, NULL), PL_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    pl_map_close(&map);
    free(path);
}

static void says_what_is_not_there(void **state)
{
    (void)state;
    char *path = in_folder("missing");
    pl_map map;
    pl_error err;
    pl_buf buf;
    pl_buf_init(&buf, 10, "test");
    assert_fails(PL_ENOTFOUND, &err, pl_map_open(&map, path, &err));
    assert_non_null(strstr(err.message, path));
    assert_fails(PL_ENOTFOUND, &err, pl_file_read(&buf, path, &err));
    assert_fails(PL_EIO, &err, pl_map_open(&map, folder, &err));
    assert_fails(PL_EIO, &err, pl_map_open(&map, "/dev/null", &err));
    assert_fails(PL_EIO, &err, pl_file_read(&buf, folder, &err));
    free(path);
}

static void reads_no_further_than_the_cap(void **state)
{
    (void)state;
    char *path = in_folder("big");
    assert_int_equal(pl_file_put(path, "0123456789", 10, NULL), PL_OK);
    pl_error err;
    pl_buf buf;
    pl_buf_init(&buf, 9, "config");
    assert_fails(PL_ELIMIT, &err, pl_file_read(&buf, path, &err));
    pl_buf_free(&buf);
    pl_buf_init(&buf, 10, "config");
    assert_int_equal(pl_file_read(&buf, path, &err), PL_OK);
    assert_int_equal(buf.len, 10);
    pl_buf_free(&buf);
    pl_buf_init(&buf, 1 << 20, "endless");
    assert_fails(PL_ELIMIT, &err, pl_input_read(&buf, "/dev/zero", &err));
    pl_buf_free(&buf);
    free(path);
}

static void an_abandoned_file_leaves_the_old_one(void **state)
{
    (void)state;
    char *path = in_folder("kept");
    assert_int_equal(pl_file_put(path, "old", 3, NULL), PL_OK);
    pl_file_out out;
    assert_int_equal(pl_file_create(&out, path, NULL), PL_OK);
    assert_int_equal(pl_file_write(&out, "new", 3, NULL), PL_OK);
    assert_int_equal(entries(), 2);
    pl_file_abandon(&out);
    assert_int_equal(entries(), 1);
    expect_content(path, "old");
    pl_file_abandon(&out);
    free(path);
}

static void parts_may_come_in_any_order(void **state)
{
    (void)state;
    char *path = in_folder("parts");
    pl_file_out out;
    assert_int_equal(pl_file_create(&out, path, NULL), PL_OK);
    assert_int_equal(pl_file_write_at(&out, 3, "def", 3, NULL), PL_OK);
    assert_int_equal(pl_file_write_at(&out, 0, "abc", 3, NULL), PL_OK);
    assert_int_equal(pl_file_commit(&out, NULL), PL_OK);
    expect_content(path, "abcdef");
    free(path);
}

/* No pipe, device or folder stands in for a file, and none is waited for: this test would hang. */
static void only_regular_files_are_files(void **state)
{
    (void)state;
    char *pipe = in_folder("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const struct {
        const char *path, *found;
    } others[] = {{pipe, "found a named pipe"}, {"/dev/zero", "found a device"}, {folder, "found a folder"}};
    pl_map map;
    pl_error err;
    pl_buf buf;
    pl_buf_init(&buf, 1 << 20, "test");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_fails(PL_EIO, &err, pl_map_open(&map, others[i].path, &err));
        assert_non_null(strstr(err.message, others[i].found));
        assert_non_null(strstr(err.message, others[i].path));
        assert_fails(PL_EIO, &err, pl_file_read(&buf, others[i].path, &err));
        assert_non_null(strstr(err.message, others[i].found));
    }
    assert_fails(PL_EIO, &err, pl_input_read(&buf, folder, &err));
    assert_non_null(strstr(err.message, "found a folder"));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        FILE *f = fopen(pipe, "w");
        _exit(f && fputs("text", f) >= 0 && fclose(f) == 0 ? 0 : 1);
    }
    assert_int_equal(pl_input_read(&buf, pipe, &err), PL_OK);
    assert_string_equal(buf.data, "text");
    int rc;
    assert_int_equal(waitpid(child, &rc, 0), child);
    assert_int_equal(rc, 0);
    pl_buf_free(&buf);
    free(pipe);
}

/* Two files that belong together: where the second cannot have its name, the first has none either. */
static void a_pair_comes_whole_or_not_at_all(void **state)
{
    (void)state;
    char *one = in_folder("one"), *other = in_folder("other");
    for (int blocked = 0; blocked < 2; blocked++) {
        pl_error err;
        pl_file_out a, b;
        assert_int_equal(pl_file_create(&a, one, &err), PL_OK);
        assert_int_equal(pl_file_create(&b, other, &err), PL_OK);
        assert_int_equal(pl_file_write(&a, "1", 1, &err), PL_OK);
        assert_int_equal(pl_file_write(&b, "2", 1, &err), PL_OK);
        if (blocked) {
            assert_int_equal(unlink(one), 0);
            assert_int_equal(unlink(other), 0);
            assert_int_equal(mkdir(other, 0700), 0);
            assert_fails(PL_EIO, &err, pl_file_commit_pair(&a, &b, &err));
            assert_non_null(strstr(err.message, other));
            assert_int_equal(entries(), 1); /* the folder in the way */
            assert_int_equal(rmdir(other), 0);
        } else {
            assert_int_equal(pl_file_commit_pair(&a, &b, &err), PL_OK);
            expect_content(one, "1");
            expect_content(other, "2");
            assert_int_equal(entries(), 2);
        }
    }
    free(one);
    free(other);
}

static void an_address_tells_its_file(void **state)
{
    (void)state;
    char *path = in_folder("mapped");
    assert_int_equal(pl_file_put(path, "0123456789", 10, NULL), PL_OK);
    pl_map map;
    size_t size = 0;
    assert_int_equal(pl_map_open(&map, path, NULL), PL_OK);
    const unsigned char *data = map.data;
    assert_string_equal(pl_mapped_name(data, &size), path);
    assert_int_equal(size, 10);
    assert_string_equal(pl_mapped_name(data + 9, &size), path);
    assert_null(pl_mapped_name(data + 10, &size));
    assert_null(pl_mapped_name(data - 1, &size));
    assert_null(pl_mapped_name(NULL, &size));
    pl_map_close(&map);
    assert_null(pl_mapped_name(data, &size));
    free(path);
}

/* A write that fails for want of room, with /dev/full behind the descriptor. In a child, which may be left half-way. */
static void a_failing_write_leaves_the_old_file(void **state)
{
    (void)state;
    char *path = in_folder("limited");
    assert_int_equal(pl_file_put(path, "old", 3, NULL), PL_OK);
    int before = entries();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char block[100000];
        pl_error err;
        pl_file_out out;
        if (pl_file_create(&out, path, &err) != PL_OK)
            _exit(2);
        int fd = open("/dev/full", O_WRONLY);
        dup2(fd, out.fd);
        pl_status status = pl_file_write(&out, block, sizeof block, &err);
        pl_file_abandon(&out);
        _exit(status == PL_EIO && err.status == PL_EIO && strstr(err.message, "limited") ? 0 : 3);
    }
    int rc;
    assert_int_equal(waitpid(child, &rc, 0), child);
    assert_int_equal(rc, 0);
    assert_int_equal(entries(), before);
    expect_content(path, "old");
    free(path);
}

static void refuses_places_where_no_file_can_be(void **state)
{
    (void)state;
    pl_error err;
    char *file = in_folder("plain");
    assert_int_equal(pl_file_put(file, "x", 1, NULL), PL_OK);
    char *below = pl_path_join(file, "below");
    assert_fails(PL_EIO, &err, pl_file_put(below, "y", 1, &err));
    assert_fails(PL_EIO, &err, pl_file_put("/nonexistent-folder/x", "y", 1, &err));
    assert_fails(PL_EIO, &err, pl_file_put(folder, "y", 1, &err));
    assert_fails(PL_EIO, &err, pl_file_put("/dev/full", "y", 1, &err));
    struct stat st;
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    free(below);
    free(file);
}

static void a_folder_without_the_right_to_write(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root may write anywhere */
    assert_int_equal(chmod(folder, 0500), 0);
    pl_error err;
    char *path = in_folder("denied");
    assert_fails(PL_EIO, &err, pl_file_put(path, "y", 1, &err));
    assert_int_equal(chmod(folder, 0700), 0);
    free(path);
}

/* /dev/null must stay a device, and a link must stay a link. */
static void devices_and_links_stay_what_they_are(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(pl_file_put("/dev/null", "y", 1, NULL), PL_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    char *target = in_folder("target"), *link = in_folder("link");
    assert_int_equal(pl_file_put(target, "old", 3, NULL), PL_OK);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(pl_file_put(link, "new", 3, NULL), PL_OK);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_content(target, "new");
    free(target);
    free(link);
}

#define test(f) cmocka_unit_test_setup_teardown(f, open_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(writes_and_reads_back),
        test(the_new_file_follows_the_umask),
        test(maps_an_empty_file),
        test(says_what_is_not_there),
        test(reads_no_further_than_the_cap),
        test(only_regular_files_are_files),
        test(a_pair_comes_whole_or_not_at_all),
        test(an_address_tells_its_file),
        test(an_abandoned_file_leaves_the_old_one),
        test(parts_may_come_in_any_order),
        test(a_failing_write_leaves_the_old_file),
        test(refuses_places_where_no_file_can_be),
        test(a_folder_without_the_right_to_write),
        test(devices_and_links_stay_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
