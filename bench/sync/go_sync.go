// Yardstick of topic `sync`: the same cases in Go.
//
//	go_sync CASE N [WORKERS]     all cases of sylar_sync without std::mutex; in channel-apart each goroutine has a thread of its own
package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
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

var sink uint64

func compute(rounds int) {
	x := uint64(88172645463325252)
	for i := 0; i < rounds; i++ {
		x ^= x << 13
		x ^= x >> 7
	}
	atomic.StoreUint64(&sink, x)
}

func lock(n int, workers int, busy int) {
	var mutex sync.Mutex
	count := 0
	all(workers, func() {
		for i := 0; i < n; i++ {
			mutex.Lock()
			count++
			if busy > 0 {
				compute(busy)
			}
			mutex.Unlock()
			if busy > 0 {
				compute(busy)
			}
		}
	})
	if count != n*workers {
		log.Fatal("lost: ", n*workers-count)
	}
}

func channel(n int, begin func()) {
	there, back := make(chan int), make(chan int)
	done := make(chan bool)
	go func() {
		begin()
		for i := 0; i < n; i++ {
			back <- <-there
		}
		done <- true
	}()
	go func() {
		begin()
		for i := 0; i < n; i++ {
			there <- i
			<-back
		}
		done <- true
	}()
	<-done
	<-done
}

func choose(n int) {
	var channels [4]chan int
	for i := range channels {
		channels[i] = make(chan int)
	}
	go func() {
		for i := 0; i < n; i++ {
			channels[i%4] <- i
		}
	}()
	sum := 0
	for i := 0; i < n; i++ {
		select {
		case value := <-channels[0]:
			sum += value
		case value := <-channels[1]:
			sum += value
		case value := <-channels[2]:
			sum += value
		case value := <-channels[3]:
			sum += value
		}
	}
	if sum != n*(n-1)/2 {
		log.Fatal("wrong sum")
	}
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: go_sync CASE N [WORKERS]")
	}
	n, _ := strconv.Atoi(os.Args[2])
	workers := 1
	if len(os.Args) > 3 {
		workers, _ = strconv.Atoi(os.Args[3])
	}
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "lock":
		timed(n*workers, func() { lock(n, workers, 0) })
	case "contended":
		timed(n*workers, func() { lock(n, workers, 100) })
	case "channel":
		timed(n, func() { channel(n, func() {}) })
	case "channel-apart":
		timed(n, func() { channel(n, runtime.LockOSThread) })
	case "tasks":
		timed(n, func() {
			for done := 0; done < n; done += 1000 {
				all(1000, func() {})
			}
		})
	case "select":
		timed(n, func() { choose(n) })
	default:
		log.Fatal("no such case: ", os.Args[1])
	}
}
