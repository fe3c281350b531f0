// What the command line of every example can say.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>
#include <vector>

// An option of one program: --name takes one of the values, at first the first one. --name alone says the
// second one where it is a switch.
struct Choice {
    std::string name, description;
    std::vector<std::string> values;
    bool is_switch = false;
    std::string value{};
};

struct Settings {
    std::string example{};      // the program's name
    std::string description{};  // one line for --help
    int epochs = 10;            // by default; and so on for the members below
    std::int64_t batch = 128;
    std::vector<Choice> choices{};
    std::string data = mnist_folder();  // folder of the data set
    std::string data_help = "Folder with the four MNIST files";
    bool accuracy = false;             // tables show it in place of the error
    std::string device{};              // empty: Bitale's own default
    std::string storage = "uint8";     // of the images on the device: uint8, int8, float32, or few bits
    std::int64_t limit = 0;            // use only so many images of each set; 0: all
    std::uint64_t seed = 1;            // of weights, order and dropout
    std::string save{}, load{};        // files of the parameters, .npz or .safetensors
    std::string checkpoint{};          // file to go on from, written after each epoch
    std::string json{};                // file for the results
    std::string dump{};                // folder for generated sources and reports
    bool takes_memory_limit = false;   // the program has --memory-limit
    bitale::ByteCount memory_limit{};  // 0: none
    bool profile = false;              // measure each kernel, print the report of a step
    bool quiet = false;

    // The value of an option of this program.
    const std::string& chosen(const std::string& name) const;
    static std::string mnist_folder();  // BITALE_DATA, else data/mnist of the source tree
};

// The defaults, overridden by the command line. Prints a message and exits for --help and for a wrong option.
Settings parse_settings(int argc, char** argv, Settings defaults);
