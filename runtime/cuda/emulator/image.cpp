#include "runtime/cuda/emulator/image.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace bitale::cuda {

namespace {

constexpr const char* ptx_begin = "// Bitale's emulator: ";
constexpr const char* ptx_object = "// object ";

template <class T>
T record_at(const char* image, std::size_t at) {
    T record;
    std::memcpy(&record, image + at, sizeof record);
    return record;
}

// Where the last of its headers and sections ends.
std::size_t length_of_object(const char* image) {
    const auto header = record_at<ElfW(Ehdr)>(image, 0);
    std::size_t end =
        std::max<std::size_t>(header.e_shoff + header.e_shnum * std::size_t{header.e_shentsize},
                              header.e_phoff + header.e_phnum * std::size_t{header.e_phentsize});
    for (std::size_t s = 0; s < header.e_shnum; ++s) {
        const auto section = record_at<ElfW(Shdr)>(image, header.e_shoff + s * header.e_shentsize);
        if (section.sh_type != SHT_NOBITS)
            end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
    }
    return end;
}

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string> object_in_image(const void* image) {
    const char* const bytes = static_cast<const char*>(image);
    if (std::strncmp(bytes, ELFMAG, SELFMAG) == 0) return std::string(bytes, length_of_object(bytes));
    if (std::strncmp(bytes, ptx_begin, std::strlen(ptx_begin)) != 0) return std::nullopt;
    const char* at = std::strstr(bytes, ptx_object);
    if (!at) return std::nullopt;
    std::string object;
    for (at += std::strlen(ptx_object); digit(at[0]) >= 0 && digit(at[1]) >= 0; at += 2)
        object += static_cast<char>(digit(at[0]) * 16 + digit(at[1]));
    return object;
}

std::string emulated_ptx(const std::string& object, const std::vector<std::string>& entries,
                         const std::string& target) {
    std::string text = fmt::format("{}no PTX, but an object for the CPU.\n.target {}\n.address_size 64\n",
                                   ptx_begin, target);
    for (const std::string& entry : entries) text += fmt::format(".visible .entry {}()\n", entry);
    text += ptx_object;
    for (const char c : object) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text + "\n";
}

}  // namespace bitale::cuda
