#include "runtime/cuda/emulator/module.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "graph/base/outside.h"
#include "graph/base/text.h"
#include "runtime/cuda/emulator/counter.h"
#include "runtime/cuda/process.h"

namespace bitale::cuda {

namespace {

// A file with the bytes, of its own name; unlinked at the end.
class TemporaryObject {
  public:
    explicit TemporaryObject(const std::string& bytes) {
        const char* base = secure_getenv("TMPDIR");
        path_ = std::string(base && *base ? base : "/tmp") + "/bitale-module-XXXXXX";
        outside::occupy_closed_streams();
        const int file = mkstemp(path_.data());
        if (file < 0) {
            error_ = errno;
            return;
        }
        std::size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
            if (n <= 0) {
                error_ = n < 0 ? errno : ENOSPC;
                break;
            }
            done += static_cast<std::size_t>(n);
        }
        close(file);
        complete_ = done == bytes.size();
    }
    ~TemporaryObject() { unlink(path_.c_str()); }
    TemporaryObject(const TemporaryObject&) = delete;
    TemporaryObject& operator=(const TemporaryObject&) = delete;

    bool complete() const { return complete_; }
    int error() const { return error_; }  // an errno, where it is not complete
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    bool complete_ = false;
    int error_ = 0;
};

// One record of an ELF file, if the file is long enough.
template <class T>
std::optional<T> record_at(const std::string& image, std::size_t at) {
    T record;
    if (at > image.size() || image.size() - at < sizeof record) return std::nullopt;
    std::memcpy(&record, image.data() + at, sizeof record);
    return record;
}

std::string demangled(const char* name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                      std::free);
    return text ? text.get() : name;
}

}  // namespace

std::unique_ptr<Module> Module::load(const std::string& image, std::string& problem) {
    // The loader takes equal names for the same object.
    const TemporaryObject file(image);
    if (!file.complete()) {
        problem = in_quotes(file.path()) + " cannot be written: " + std::strerror(file.error());
        return nullptr;
    }
    std::unique_ptr<Module> module(new Module);
    module->handle_ = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module->handle_) {
        problem = dlerror();
        return nullptr;
    }
    module->image_ = image;
    link_map* map = nullptr;
    if (dlinfo(module->handle_, RTLD_DI_LINKMAP, &map) == 0)
        module->base_ = reinterpret_cast<char*>(map->l_addr);
    module->source_ = static_cast<const char*>(dlsym(module->handle_, "emulated_source"));
    module->file_ = static_cast<const char*>(dlsym(module->handle_, "emulated_file"));
    if (const void* first = dlsym(module->handle_, "emulated_first_line"))
        std::memcpy(&module->first_line_, first, sizeof module->first_line_);
    module->read_symbols();
    return module;
}

Module::~Module() {
    if (handle_) dlclose(handle_);
}

// Static variables of functions are all that a kernel's text can have of writable objects: its shared arrays.
void Module::read_symbols() {
    const auto header = record_at<ElfW(Ehdr)>(image_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
    const auto section = [&](std::size_t number) {
        return record_at<ElfW(Shdr)>(image_, header->e_shoff + number * header->e_shentsize);
    };
    for (std::size_t s = 0; s < header->e_shnum; ++s) {
        const auto table = section(s);
        if (!table || table->sh_type != SHT_SYMTAB) continue;
        const auto names = section(table->sh_link);
        for (std::size_t at = 0; names && at + sizeof(ElfW(Sym)) <= table->sh_size; at += sizeof(ElfW(Sym))) {
            const auto symbol = record_at<ElfW(Sym)>(image_, table->sh_offset + at);
            if (!symbol || (symbol->st_info & 15) != STT_OBJECT || symbol->st_shndx >= header->e_shnum ||
                names->sh_offset + symbol->st_name >= image_.size())
                continue;
            const char* name = image_.c_str() + names->sh_offset + symbol->st_name;
            const auto home = section(symbol->st_shndx);
            if (std::strncmp(name, "_ZZ", 3) != 0 || !home || !(home->sh_flags & SHF_WRITE)) continue;
            const std::string text = demangled(name);
            const std::size_t end = text.rfind("::");
            shared_arrays_.push_back({text, text.substr(0, std::min(end, text.find('('))),
                                      base_ + symbol->st_value, symbol->st_size});
        }
    }
    std::sort(shared_arrays_.begin(), shared_arrays_.end(),
              [](const SharedArray& a, const SharedArray& b) { return a.data < b.data; });
}

bool Module::is_constant(const void* address) const {
    const auto header = record_at<ElfW(Ehdr)>(image_, 0);
    const auto place = static_cast<std::size_t>(static_cast<const char*>(address) - base_);
    for (std::size_t p = 0; header && p < header->e_phnum; ++p) {
        const auto part = record_at<ElfW(Phdr)>(image_, header->e_phoff + p * header->e_phentsize);
        if (part && part->p_type == PT_LOAD && !(part->p_flags & PF_W) &&
            place - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

const EmulatedKernel* Module::find(const std::string& kernel) {
    if (const auto at = kernels_.find(kernel); at != kernels_.end()) return &at->second;
    void* entry = dlsym(handle_, ("emulated_" + kernel).c_str());
    const auto bytes = reinterpret_cast<unsigned long (*)(unsigned long)>(
        dlsym(handle_, ("emulated_" + kernel + "_bytes").c_str()));
    if (!entry || !bytes) return nullptr;
    EmulatedKernel& k = kernels_[kernel];
    k = {kernel,
         reinterpret_cast<void (*)(EmulatorState*, void**)>(entry),
         this,
         {},
         dlsym(handle_, "emulated_watched") != nullptr,
         {},
         std::make_shared<CountedKernel>()};
    while (const std::size_t n = bytes(k.argument_bytes.size())) k.argument_bytes.push_back(n);
    for (const SharedArray& a : shared_arrays_)
        if (a.function == kernel || !dlsym(handle_, ("emulated_" + a.function).c_str()))
            k.shared.push_back(a);
    return &k;
}

std::string Module::cite(int line) const {
    const int number = line - first_line_ + 1;
    if (!source_ || number < 1) return fmt::format("line {}", line);
    const char* at = source_;
    for (int l = 1; l < number && at; ++l) {
        at = std::strchr(at, '\n');
        if (at) ++at;
    }
    if (!at) return fmt::format("line {}", number);
    std::string text(at, std::strcspn(at, "\n"));
    text.erase(0, text.find_first_not_of(' '));
    constexpr std::size_t most = 160;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return fmt::format("line {}, `{}`", number, text);
}

std::string Module::cite(const void* code) const {
    const auto place = static_cast<std::size_t>(static_cast<const char*>(code) - base_);
    const TemporaryObject file(image_);
    // Within the call, not behind it.
    const std::optional<std::string> said =
        file.complete() ? output_of({"addr2line", "-e", file.path(), fmt::format("{:#x}", place - 1)})
                        : std::nullopt;
    const std::size_t colon = said ? said->rfind(':') : std::string::npos;
    const int line = colon == std::string::npos ? 0 : std::atoi(said->c_str() + colon + 1);
    return line > 0 ? cite(line) : fmt::format("offset {:#x}", place);
}

std::vector<std::string> Module::statements(const std::vector<const void*>& code) const {
    std::vector<std::string> all;
    std::vector<std::string> command = {"addr2line", "-a", "-i", "-e", ""};
    for (const void* c : code) {
        const auto place = static_cast<std::size_t>(static_cast<const char*>(c) - base_);
        all.push_back(fmt::format("offset {:#x}", place));
        command.push_back(fmt::format("{:#x}", place - 1));
    }
    const TemporaryObject file(image_);
    command[4] = file.path();
    const std::optional<std::string> said =
        file.complete() && !code.empty() ? output_of(command) : std::nullopt;
    const long lines = source_ ? std::count(source_, source_ + std::strlen(source_), '\n') : 0;
    const std::string_view file_name = file_ ? file_ : "", own = file_name.substr(file_name.rfind('/') + 1);
    std::istringstream answers(said.value_or(""));
    std::size_t next = 0;
    // The address, then a line for each function from the innermost one on: the last one in the text counts.
    for (std::string answer; std::getline(answers, answer);) {
        const std::size_t colon = answer.rfind(':');
        if (answer.starts_with("0x")) ++next;
        if (next == 0 || next > all.size() || colon == std::string::npos) continue;
        const int line = std::atoi(answer.c_str() + colon + 1);
        const std::string name = answer.substr(0, colon);
        if (line <= 0) continue;
        if (file_ && name.substr(name.rfind('/') + 1) != own)
            all[next - 1] = fmt::format("{}:{}", name.substr(name.rfind('/') + 1), line);
        else if (line >= first_line_ && line < first_line_ + lines)
            all[next - 1] = cite(line);
    }
    return all;
}

}  // namespace bitale::cuda
