#include "base/file.h"

#include "base/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What stands in a regular file's place. */
static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISREG(mode)  ? "a regular file"
                            : "a device";
}

/* Open a regular file; with `pipes`, also what text may stream from. O_NONBLOCK: a pipe without a writer must not hold
 * up the refusal. */
static pl_status open_read(const char *path, bool pipes, int *fd, struct stat *st, pl_error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (pipes ? 0 : O_NONBLOCK));
    if (*fd < 0 && errno == EWOULDBLOCK && stat(path, st) == 0 && S_ISREG(st->st_mode))
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY); /* a file server's lease: it is given back when asked for */
    int why = errno;
    bool there = *fd >= 0 ? fstat(*fd, st) == 0 : stat(path, st) == 0;
    if (there && (S_ISDIR(st->st_mode) || S_ISSOCK(st->st_mode) || (!pipes && !S_ISREG(st->st_mode))))
        pl_fail(err, PL_EIO, "%s: expected a regular file%s, found %s", path, pipes ? " or a pipe" : "",
                kind_of(st->st_mode));
    else if (*fd < 0)
        return pl_fail(err, why == ENOENT ? PL_ENOTFOUND : PL_EIO, "%s: %s", path, strerror(why));
    else if (there)
        return PL_OK;
    else
        pl_fail(err, PL_EIO, "%s: %s", path, strerror(errno));
    if (*fd >= 0)
        close(*fd);
    return PL_EIO;
}

pl_status pl_map_open(pl_map *map, const char *path, pl_error *err)
{
    *map = (pl_map){0};
    int fd;
    struct stat st;
    PL_TRY(open_read(path, false, &fd, &st, err));
    pl_status status = PL_OK;
    if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            status = pl_fail(err, PL_EIO, "%s: map of %lld bytes: %s", path, (long long)st.st_size, strerror(errno));
        else
            *map = (pl_map){.data = p, .size = (size_t)st.st_size};
    }
    close(fd);
    if (map->data)
        pl__mapped_add(map->data, map->size, path);
    return status;
}

void pl_map_close(pl_map *map)
{
    if (map->data) {
        pl__mapped_remove(map->data);
        munmap((void *)(uintptr_t)map->data, map->size);
    }
    *map = (pl_map){0};
}

static pl_status read_all(pl_buf *buf, int fd, const char *shown, pl_error *err)
{
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pl_fail(err, PL_EIO, "%s: %s", shown, strerror(errno));
        if (n == 0)
            return PL_OK;
        PL_TRY(pl_buf_add(buf, chunk, (size_t)n, err));
    }
}

static pl_status read_from(pl_buf *buf, const char *path, bool pipes, pl_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(buf, STDIN_FILENO, pl_input_name(path), err);
    int fd;
    struct stat st;
    PL_TRY(open_read(path, pipes, &fd, &st, err));
    pl_status status = read_all(buf, fd, path, err);
    close(fd);
    return status;
}

pl_status pl_file_read(pl_buf *buf, const char *path, pl_error *err)
{
    return read_from(buf, path, false, err);
}

pl_status pl_input_read(pl_buf *buf, const char *path, pl_error *err)
{
    return read_from(buf, path, true, err);
}

const char *pl_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Temporary names where a signal handler may read them: fixed places, because memory may be freed under its eyes. A
 * name is whole before its place is marked. */
enum { PLACES = 8 };
static struct {
    atomic_bool taken, named;
    char name[PATH_MAX];
} places[PLACES];

/* The place of a temporary name, -1 when there is none. */
static int note_temp(const char *temp)
{
    size_t n = strlen(temp) + 1;
    for (int i = 0; i < PLACES && n <= PATH_MAX; i++)
        if (!atomic_exchange(&places[i].taken, true)) {
            memcpy(places[i].name, temp, n);
            atomic_store(&places[i].named, true);
            return i;
        }
    return -1;
}

static void forget_temp(int place)
{
    if (place < 0)
        return;
    atomic_store(&places[place].named, false);
    atomic_store(&places[place].taken, false);
}

void pl_file_unlink_temps(void)
{
    for (int i = 0; i < PLACES; i++)
        if (atomic_load(&places[i].named))
            unlink(places[i].name);
}

/* What the final name is now. A symbolic link is followed, so that the file it points to is replaced and not the link.
 * A device or a pipe is written straight: a rename would put a plain file in the place of /dev/null. */
static pl_status look_at_target(pl_file_out *out, const char *path, bool *straight, pl_error *err)
{
    struct stat st;
    *straight = false;
    char *real = realpath(path, NULL);
    if (real) {
        free(out->path);
        out->path = real;
    }
    if (stat(path, &st) != 0)
        return PL_OK; /* nothing there yet */
    if (S_ISDIR(st.st_mode))
        return pl_fail(err, PL_EIO, "%s: is a folder", path);
    *straight = !S_ISREG(st.st_mode);
    return PL_OK;
}

/* A new file beside the final one. Its name is noted before it is there: a signal may come in between. */
static void open_temp(pl_file_out *out, size_t room)
{
    for (int tries = 0; tries < 100 && out->fd < 0; tries++) {
        unsigned mark = 0;
        if (getrandom(&mark, sizeof mark, GRND_NONBLOCK) < 0)
            mark = (unsigned)tries;
        snprintf(out->temp, room, "%s.%ld.%08x", out->path, (long)getpid(), mark);
        out->place = note_temp(out->temp);
        out->fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd >= 0)
            return;
        int why = errno;
        forget_temp(out->place);
        out->place = -1;
        errno = why;
        if (why != EEXIST)
            return;
    }
}

static pl_status open_target(pl_file_out *out, const char *path, pl_error *err)
{
    bool straight;
    if (strcmp(path, "-") == 0) {
        out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return out->fd >= 0 ? PL_OK : pl_fail(err, PL_EIO, "%s: %s", out->path, strerror(errno));
    }
    PL_TRY(look_at_target(out, path, &straight, err));
    if (straight) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        size_t n = strlen(out->path) + 40;
        out->temp = malloc(n);
        if (!out->temp)
            return pl_fail(err, PL_ENOMEM, "%s: no memory for its name", path);
        open_temp(out, n);
    }
    if (out->fd < 0) {
        int why = errno;
        free(out->temp); /* never came to be: not ours to remove */
        out->temp = NULL;
        return pl_fail(err, PL_EIO, "%s: cannot be created: %s", path, strerror(why));
    }
    return PL_OK;
}

pl_status pl_file_create(pl_file_out *out, const char *path, pl_error *err)
{
    *out = (pl_file_out){.fd = -1, .place = -1};
    out->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
    if (!out->path)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for its name", path);
    pl_status status = open_target(out, path, err);
    if (status != PL_OK)
        pl_file_abandon(out);
    return status;
}

pl_status pl_file_write(pl_file_out *out, const void *bytes, size_t n, pl_error *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t w = write(out->fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return pl_fail(err, PL_EIO, "%s: write: %s", out->path, strerror(errno));
        p += w;
        n -= (size_t)w;
    }
    return PL_OK;
}

pl_status pl_file_write_at(pl_file_out *out, uint64_t offset, const void *bytes, size_t n, pl_error *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t w = pwrite(out->fd, p, n, (off_t)offset);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return pl_fail(err, PL_EIO, "%s: write: %s", out->path, strerror(errno));
        p += w;
        n -= (size_t)w;
        offset += (uint64_t)w;
    }
    return PL_OK;
}

/* All bytes on the disk, under the temporary name still. */
static pl_status seal(pl_file_out *out, pl_error *err)
{
    pl_status status = PL_OK;
    if (out->temp && fsync(out->fd) != 0)
        status = pl_fail(err, PL_EIO, "%s: flush: %s", out->path, strerror(errno));
    if (close(out->fd) != 0 && status == PL_OK)
        status = pl_fail(err, PL_EIO, "%s: close: %s", out->path, strerror(errno));
    out->fd = -1;
    return status;
}

static pl_status give_name(pl_file_out *out, pl_error *err)
{
    if (out->temp && rename(out->temp, out->path) != 0)
        return pl_fail(err, PL_EIO, "%s: rename: %s", out->path, strerror(errno));
    free(out->temp);
    out->temp = NULL;
    return PL_OK;
}

pl_status pl_file_commit(pl_file_out *out, pl_error *err)
{
    pl_status status = seal(out, err);
    if (status == PL_OK)
        status = give_name(out, err);
    pl_file_abandon(out);
    return status;
}

pl_status pl_file_commit_pair(pl_file_out *one, pl_file_out *other, pl_error *err)
{
    bool named = one->temp != NULL; /* else it is written straight: nothing to take back */
    pl_status status = seal(one, err);
    if (status == PL_OK)
        status = seal(other, err);
    if (status == PL_OK)
        status = give_name(one, err);
    if (status == PL_OK) {
        status = give_name(other, err);
        if (status != PL_OK && named)
            unlink(one->path);
    }
    pl_file_abandon(one);
    pl_file_abandon(other);
    return status;
}

void pl_file_abandon(pl_file_out *out)
{
    if (out->fd >= 0)
        close(out->fd);
    if (out->temp)
        unlink(out->temp);
    if (out->path) /* a struct that was never created has no place */
        forget_temp(out->place);
    free(out->temp);
    free(out->path);
    *out = (pl_file_out){.fd = -1, .place = -1};
}

pl_status pl_file_put(const char *path, const void *bytes, size_t n, pl_error *err)
{
    pl_file_out out;
    PL_TRY(pl_file_create(&out, path, err));
    pl_status status = pl_file_write(&out, bytes, n, err);
    if (status == PL_OK)
        return pl_file_commit(&out, err);
    pl_file_abandon(&out);
    return status;
}

char *pl_path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}
