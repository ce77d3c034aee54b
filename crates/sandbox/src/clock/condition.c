/* Waits of C11 threads, led through the pthread call that libfaketime knows. Their deadline is made
 * of the faked time of day, and glibc's own cnd_timedwait compares it with the real one: with a
 * clock an hour ahead a wait of a second would last an hour. */
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    int outcome = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    if (outcome == ETIMEDOUT) {
        return thrd_timedout;
    }
    return outcome == 0 ? thrd_success : thrd_error;
}
