// A shared object with emulated kernels, loaded: its kernels, its shared arrays, its text.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bitale::cuda {

struct EmulatorState;
struct CountedKernel;  // counter.h
class Module;

// A __shared__ variable.
struct SharedArray {
    std::string name;      // as "k_test::s"
    std::string function;  // where it is declared: "k_test"
    char* data = nullptr;
    std::size_t bytes = 0;
};

struct EmulatedKernel {
    std::string name;
    void (*entry)(EmulatorState* state, void** arguments) = nullptr;
    const Module* module = nullptr;
    std::vector<std::size_t> argument_bytes;  // of each argument
    bool watched = false;                     // it tells of its accesses
    std::vector<SharedArray> shared;          // its own and those of functions that kernels share; by address
    std::shared_ptr<CountedKernel> counts;    // where what it asks for is counted

    // Every pointer that could be one among the bytes of the arguments, and its place among them.
    template <class F>
    void for_each_pointer(void** arguments, F&& f) const {
        std::size_t place = 0;
        for (std::size_t a = 0; a < argument_bytes.size(); ++a)
            for (std::size_t at = 0; at + sizeof(void*) <= argument_bytes[a]; at += sizeof(void*)) {
                const char* pointer = nullptr;
                std::memcpy(&pointer, static_cast<const char*>(arguments[a]) + at, sizeof pointer);
                f(pointer, place++);
            }
    }
};

class Module {
  public:
    // Null where the loader refuses the image; `problem` then has its words.
    static std::unique_ptr<Module> load(const std::string& image, std::string& problem);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    const EmulatedKernel* find(const std::string& kernel);
    // Constants of the text lie there.
    bool is_constant(const void* address) const;

    std::string source() const { return source_ ? source_ : ""; }
    // A line of the object's source, for people: "line 12, `s[t] = x;`", counted from the CUDA text's first.
    std::string cite(int line) const;
    // Likewise of a return address, as far as a tool on PATH knows it; else its place in the object.
    std::string cite(const void* code) const;
    // Of each of many return addresses, the statement of the kernel that it belongs to, whatever was inlined
    // there: "net.cpp:15" where the text has the user's lines, else as cite().
    std::vector<std::string> statements(const std::vector<const void*>& code) const;

  private:
    Module() = default;
    void read_symbols();

    std::string image_;
    void* handle_ = nullptr;
    char* base_ = nullptr;
    const char* source_ = nullptr;
    const char* file_ = nullptr;  // what the compiler called it
    int first_line_ = 1;
    std::vector<SharedArray> shared_arrays_;
    std::map<std::string, EmulatedKernel> kernels_;
};

}  // namespace bitale::cuda
