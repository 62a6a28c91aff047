// Yardstick of topic `fiber`: the same cases in Go.
//
//	go_fibers CASE N [WORKERS]     all cases of sylar_fibers but sockets; pairs, wake, wake-busy and skynet exchange over channels
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func cpu() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func timed(operations int, work func()) {
	wall, spent := time.Now(), cpu()
	work()
	n := float64(operations)
	fmt.Printf("{\"ns\": %.2f, \"cpu_ns\": %.2f, \"operations\": %.0f}\n",
		float64(time.Since(wall))/n, float64(cpu()-spent)/n, n)
}

func all(n int, work func()) {
	var group sync.WaitGroup
	group.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			work()
			group.Done()
		}()
	}
	group.Wait()
}

func yields(n int) func() {
	return func() {
		for i := 0; i < n; i++ {
			runtime.Gosched()
		}
	}
}

func link(left int, whole chan bool) {
	if left == 0 {
		whole <- true
		return
	}
	go link(left-1, whole)
}

func skynet(result chan int, number, leaves int) {
	if leaves == 1 {
		result <- number
		return
	}
	sums := make(chan int)
	for i := 0; i < 10; i++ {
		go skynet(sums, number+i*leaves/10, leaves/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-sums
	}
	result <- sum
}

func pair(n int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for i := 0; i < n; i++ {
			back <- <-there
		}
	}()
	for i := 0; i < n; i++ {
		there <- i
		<-back
	}
}

// The same, and each of the two has a thread of its own, so every message goes from one thread to another.
func pairOnThreads(n int) {
	there, back := make(chan int), make(chan int)
	go func() {
		runtime.LockOSThread()
		for i := 0; i < n; i++ {
			back <- <-there
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := 0; i < n; i++ {
		there <- i
		<-back
	}
}

// Two goroutines that yield all the time, until what is returned is called.
func keepBusy() func() {
	var over atomic.Bool
	for i := 0; i < 2; i++ {
		go func() {
			for !over.Load() {
				runtime.Gosched()
			}
		}()
	}
	return func() { over.Store(true) }
}

var sink uint64

func compute(rounds int) {
	x := uint64(88172645463325252)
	for i := 0; i < rounds; i++ {
		x ^= x << 13
		x ^= x >> 7
	}
	atomic.StoreUint64(&sink, x)
}

func tree(leaves int) {
	if leaves == 1 {
		compute(2000)
		return
	}
	var group sync.WaitGroup
	group.Add(2)
	for _, half := range []int{leaves / 2, leaves - leaves/2} {
		go func(half int) {
			tree(half)
			group.Done()
		}(half)
	}
	group.Wait()
}

func resident() int {
	bytes, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		log.Fatal(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(bytes))[1])
	return pages * os.Getpagesize()
}

func live(n int) {
	before := resident()
	var started, ended sync.WaitGroup
	started.Add(n)
	ended.Add(n)
	end := make(chan bool)
	for i := 0; i < n; i++ {
		go func() {
			started.Done()
			<-end
			ended.Done()
		}()
	}
	started.Wait()
	fmt.Printf("{\"bytes\": %d, \"operations\": %d}\n", (resident()-before)/n, n)
	close(end)
	ended.Wait()
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: go_fibers CASE N [WORKERS]")
	}
	n, _ := strconv.Atoi(os.Args[2])
	workers := 1
	if len(os.Args) > 3 {
		workers, _ = strconv.Atoi(os.Args[3])
	}
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "yield":
		timed(2*n, func() { all(2, yields(n)) })
	case "spawn":
		timed(n, func() {
			done := make(chan bool)
			for i := 0; i < n; i++ {
				go func() { done <- true }()
				<-done
			}
		})
	case "spawn-many":
		timed(n, func() {
			for done := 0; done < n; done += 10000 {
				all(10000, func() {})
			}
		})
	case "chain":
		timed(n, func() {
			whole := make(chan bool)
			go link(n, whole)
			<-whole
		})
	case "yield-many":
		timed(n, func() { all(1000, yields(n/1000)) })
	case "skynet":
		timed(n, func() {
			result := make(chan int)
			go skynet(result, 0, n)
			<-result
		})
	case "pairs":
		timed(2*n*workers, func() { all(8*workers, func() { pair(n / 8) }) })
	case "wake":
		timed(2*n, func() { pairOnThreads(n) })
	case "wake-busy":
		end := keepBusy()
		timed(2*n, func() { pairOnThreads(n) })
		end()
	case "tree":
		timed(n, func() { tree(n) })
	case "timers":
		timed(n*workers, func() {
			all(workers, func() {
				for i := 0; i < n; i++ {
					time.AfterFunc(time.Second, func() {}).Stop()
				}
			})
		})
	case "live":
		live(n)
	default:
		log.Fatal("no such case: ", os.Args[1])
	}
}
