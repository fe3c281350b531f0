// What the command line of every example can say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Settings {
    std::string example{};      // the program's name
    std::string description{};  // one line for --help
    int epochs = 10;            // by default; and so on for the members below
    std::int64_t batch = 128;
    std::vector<std::string> nets{};  // names that --net takes, the default first; empty: no such option
    std::string net{};
    std::string device{};           // empty: Bitale's own default
    std::string storage = "uint8";  // of the images on the device: uint8, int8 or float32
    std::int64_t limit = 0;         // use only so many images of each set; 0: all
    std::uint64_t seed = 1;         // of weights, order and dropout
    std::string data{};             // folder of the four MNIST files
    std::string save{}, load{};     // npz files of the parameters
    std::string json{};             // file for the results
    std::string dump{};             // folder for generated sources and reports
    bool quiet = false;
};

// The defaults, overridden by the command line. Prints a message and exits for --help and for a wrong option.
Settings parse_settings(int argc, char** argv, Settings defaults);
