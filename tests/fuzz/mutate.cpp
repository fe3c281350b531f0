#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <random>
#include <string_view>

namespace bitale::fuzz {

namespace {

constexpr std::size_t longest = 1 << 14;
// Numbers and words at which parsers change their minds.
constexpr std::array<std::int64_t, 14> edges{0,     1,      -1,         2,          127,       128,       255,
                                             32767, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, INT64_MIN, 22};
constexpr std::array<std::string_view, 24> words{
    "{",     "}",       "[",       "]",    "(",    ")",     ",",  ":",   "'",      "\"",     "=",      "\n",
    "False", "'shape'", "'descr'", "True", "null", "1e999", "-1", "<f4", "PK\1\2", "PK\3\4", "PK\5\6", "L"};

class Mutator {
  public:
    Mutator(const std::vector<std::string>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

    std::string next() {
        std::string s = corpus_.empty() ? "" : corpus_[below(corpus_.size())];
        for (std::uint64_t changes = 1 + below(below(4) == 0 ? 16 : 3); changes > 0; --changes) change(s);
        if (s.size() > longest) s.resize(longest);
        return s;
    }

  private:
    std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
    std::size_t place(const std::string& s) { return static_cast<std::size_t>(below(s.size() + 1)); }

    void change(std::string& s) {
        const std::size_t at = place(s);
        switch (below(10)) {
            case 0:
                if (at < s.size()) s[at] = static_cast<char>(s[at] ^ 1 << below(8));
                break;
            case 1:
                if (at < s.size()) s[at] = static_cast<char>(below(256));
                break;
            case 2: s.insert(at, 1 + below(4), static_cast<char>(below(256))); break;
            case 3: s.erase(at, 1 + below(below(4) == 0 ? 64 : 4)); break;
            case 4: s.insert(at, s.substr(place(s), 1 + below(32))); break;  // a part twice
            case 5: number(s, at); break;
            case 6: s.insert(at, words[below(words.size())]); break;
            case 7: digits(s, at); break;
            case 8:
                if (!corpus_.empty()) {  // the end of another one
                    const std::string& other = corpus_[below(corpus_.size())];
                    s = s.substr(0, at) + other.substr(place(other));
                }
                break;
            default: s.resize(at);
        }
    }
    // A number in place, of either byte order.
    void number(std::string& s, std::size_t at) {
        const std::size_t width = std::size_t{1} << below(4);
        auto x = static_cast<std::uint64_t>(edges[below(edges.size())]) + below(3) - 1;
        const bool big = below(2) == 1;
        for (std::size_t i = 0; i < width && at + i < s.size(); ++i, x >>= 8)
            s[big && at + width <= s.size() ? at + width - 1 - i : at + i] = static_cast<char>(x & 0xff);
    }
    // The digits that follow become another number.
    void digits(std::string& s, std::size_t at) {
        const std::size_t first = s.find_first_of("0123456789", at);
        if (first == std::string::npos) return;
        const std::size_t last = std::min(s.find_first_not_of("0123456789", first), s.size());
        s.replace(first, last - first, std::to_string(edges[below(edges.size())]));
    }

    const std::vector<std::string>& corpus_;
    std::mt19937_64 random_;
};

std::optional<Finding> tried(const Target& target, const std::string& input) {
    try {
        target.run(input);
        return {};
    } catch (const std::exception& e) {
        return Finding{input, e.what()};
    } catch (...) {
        return Finding{input, "an exception that is no std::exception"};
    }
}

}  // namespace

Outcome fuzz(const Target& target, const std::vector<std::string>& corpus, const Effort& effort) {
    Outcome r;
    for (const std::string& input : corpus) {
        ++r.executions;
        if ((r.finding = tried(target, input))) return r;
    }
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(effort.seconds));
    Mutator mutator(corpus, effort.seed);
    while ((effort.executions == 0 || r.executions < effort.executions) && Clock::now() < end) {
        ++r.executions;
        if ((r.finding = tried(target, mutator.next()))) return r;
    }
    return r;
}

}  // namespace bitale::fuzz
