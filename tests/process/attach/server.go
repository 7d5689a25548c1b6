// SPDX-License-Identifier: Apache-2.0
// An HTTP server for the tests of lbr record -p and lbr run -p: goroutines, a garbage collector that works all the time,
// and loops that the runtime interrupts by signals. /work/N answers with a number that the client knows, /count with the
// number of requests so far.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

var count int64

func work(number uint32) uint32 {
	hash := number
	texts := make(map[uint32]string)
	for i := uint32(0); i < 1000; i++ {
		hash = (hash ^ i) * 16777619
		if i%10 == 0 {
			texts[hash] = strconv.Itoa(int(hash))
		}
	}
	for number, text := range texts {
		if text != strconv.Itoa(int(number)) {
			panic("wrong text: " + text)
		}
	}
	return hash
}

// spin computes without a function call, so that only a signal preempts it.
func spin() {
	for {
		sum := uint32(0)
		for i := uint32(0); i < 20000000; i++ {
			sum = sum*31 + i
		}
		if sum != 1818990208 {
			panic(fmt.Sprint("wrong sum: ", sum))
		}
	}
}

func main() {
	if len(os.Args) > 2 {
		go spin()
	}
	http.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, atomic.LoadInt64(&count))
	})
	http.HandleFunc("/work/", func(w http.ResponseWriter, r *http.Request) {
		number, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/work/"))
		atomic.AddInt64(&count, 1)
		fmt.Fprintf(w, "%08x\n", work(uint32(number)))
	})
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
	os.Exit(1)
}
