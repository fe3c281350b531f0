// What each step of a function moves, computes and takes, as numbers: what reports and profiles are made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bitale/function.h"
#include "codegen/program.h"

namespace bitale {

// Values of the symbols of a call.
class Lengths {
  public:
    Lengths() = default;
    // Of the last call, or of a call that is only planned; empty: typical ones.
    Lengths(const Program& program, const std::vector<std::int64_t>& values, bool of_last_call = true);
    bool of_last_call() const { return of_last_call_; }
    double operator()(const Int& x) const;
    std::string text(const Shape& shape) const;  // "[128, 28, 28]"
    std::string words() const;                   // "x.0 = 128, i = 0"; at most three of them

  private:
    std::map<std::uint64_t, std::int64_t> values_;
    std::vector<std::string> named_;
    bool of_last_call_ = false;
};

struct StepFigures {
    const Step* step = nullptr;
    int number = 0;                           // in reports
    bool once = false;                        // runs when shared variables changed, not at each call
    double reads = 0, writes = 0, flops = 0;  // of a call
    std::int64_t calls = 0;                   // of the profile
    double seconds = 0;                       // of a call: of the profile, else an estimate
    double share = 0;                         // of the time of all steps
};

struct Figures {
    Lengths lengths;
    bool measured = false;
    double seconds = 0;  // of all calls of the profile; else of one, as estimated
    std::vector<StepFigures> steps;
};

// `rows`: of the profile, in the order of the steps; empty: there is none.
Figures figures_of(const Program& program, Lengths lengths, const std::vector<Profile::Row>& rows);

// Of a call on so many threads of a CPU, if tasks take what they are estimated to.
double seconds_on(const Figures& figures, int threads);

// A row of the profile.
Profile::Row row_of(const Program& program, const Step& step, int number, const Lengths& lengths,
                    std::int64_t calls, double seconds);

// "12.1 MB", "830 us", "88.3": three digits or so, for columns.
std::string bytes_in_words(double bytes);
std::string time_in_words(double seconds);
std::string three_digits(double x);
// The distinct lines of the user's, by file: "net.cpp:12, 14, 15, other.cpp:3"; at most so many of them.
std::string lines_of(const std::vector<Origin>& origins, std::size_t most);
// The same of lines without duplicates, in the order in which they are given.
std::string text_of_lines(const std::vector<Where>& lines, std::size_t most);

}  // namespace bitale
