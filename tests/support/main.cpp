// The main function of every test executable. Catch2's version 2 takes 15 s to compile here: so it is done
// once.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

// AddressSanitizer guesses where the thread-local memory of a loaded library (oneDNN) lies from the words
// before it; where it guesses wrong, its search for leaks reads there and crashes (LeakSanitizer: "Tracer
// caught signal").
extern "C" const char* __asan_default_options();  // other builds have nobody who asks
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
