// The mutexes and conditions of C11, each of which is one of pthread. Source: glibc, nptl/mtx_lock.c, nptl/cnd_wait.c, thrd_priv.h.
#include <pthread.h>
#include <threads.h>

#include <cerrno>

namespace {

int ofC11(int error) {
  switch (error) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
  }
}
pthread_cond_t* ofC11(cnd_t* cond) { return reinterpret_cast<pthread_cond_t*>(cond); }
pthread_mutex_t* ofC11(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }

}  // namespace

extern "C" {

int mtx_lock(mtx_t* mutex) { return ofC11(pthread_mutex_lock(ofC11(mutex))); }
int mtx_timedlock(mtx_t* mutex, const timespec* time) { return ofC11(pthread_mutex_timedlock(ofC11(mutex), time)); }
int mtx_trylock(mtx_t* mutex) { return ofC11(pthread_mutex_trylock(ofC11(mutex))); }
int mtx_unlock(mtx_t* mutex) { return ofC11(pthread_mutex_unlock(ofC11(mutex))); }

int cnd_wait(cnd_t* cond, mtx_t* mutex) { return ofC11(pthread_cond_wait(ofC11(cond), ofC11(mutex))); }
int cnd_timedwait(cnd_t* cond, mtx_t* mutex, const timespec* time) {
  return ofC11(pthread_cond_timedwait(ofC11(cond), ofC11(mutex), time));
}
int cnd_signal(cnd_t* cond) { return ofC11(pthread_cond_signal(ofC11(cond))); }
int cnd_broadcast(cnd_t* cond) { return ofC11(pthread_cond_broadcast(ofC11(cond))); }

}  // extern "C"
