// How the sanitizers look at every test; linked into each. *SAN_OPTIONS in the environment add to it. A test may be without
// (OWN_SANITIZER_OPTIONS) and bring its own. They are strong: the runtime has weak ones, which come first.
extern "C" {

/// A local that is used after its function has returned is reported, too.
const char* __asan_default_options() { return "detect_stack_use_after_return=1"; }

/// A race is reported only while the runtime still knows where the earlier access was. At its usual memory, the turns of a fiber
/// that merely yields make it forget within microseconds.
const char* __tsan_default_options() { return "history_size=4"; }

}  // extern "C"
