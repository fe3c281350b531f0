// The training programs: what they report, their storages, and how they end.
#include "tests/examples/programs.h"

#include <bitale/bitale.h>

#include <filesystem>

#include "common/settings.h"
#include "tests/support/catch.h"
#include "tests/support/temporary.h"

namespace bitale {
namespace {

using nlohmann::json;

// 700 images of each set: a partial last minibatch in training and in evaluation.
const std::string few = " --limit 700 --epochs 2 --batch 128 --seed 3";

struct Case {
    const char* program;
    const char* name;  // in the results
};
const Case cases[] = {
    {"logistic_regression", "logistic_regression"}, {"mlp", "mlp"}, {"mnist_cnn", "mnist_cnn"}};

std::vector<double> losses_of(const json& results) {
    std::vector<double> losses;
    for (const json& epoch : results["epochs"])
        for (const char* field : {"train_loss", "train_error", "test_loss", "test_error"})
            losses.push_back(epoch[field].get<double>());
    return losses;
}

TEST_CASE("every program reports its results") {
    for (const Case& c : cases) {
        INFO(c.program);
        const json r = results_of(c.program + few);
        CHECK(r.size() == (c.program == std::string("mnist_cnn") ? 11 : 10));
        CHECK(r["example"] == c.name);
        CHECK(r["device"] == "cpu");
        CHECK(r["storage"] == "uint8");
        CHECK(r["batch"] == 128);
        CHECK(r["seed"] == 3);
        CHECK(r["compile_seconds"].get<double>() >= 0);
        CHECK(r["kernels"].get<int>() > 0);
        CHECK(r["data_bytes"] == 700 * 784);
        CHECK(r["peak_bytes"].get<std::int64_t>() > 0);
        REQUIRE(r["epochs"].size() == 2);
        for (int k = 0; k < 2; ++k) {
            const json& e = r["epochs"][k];
            CHECK(e.size() == 6);
            CHECK(e["epoch"] == k + 1);
            CHECK(e["seconds"].get<double>() > 0);
        }
        const std::vector<double> losses = losses_of(r);
        CHECK(losses[4] < losses[0]);  // the second epoch's training loss
        CHECK(losses[0] < 2.5);
        CHECK(losses[7] < 0.5);  // test error
    }
}

TEST_CASE("storages of the images compute the same") {
    for (const Case& c : cases) {
        INFO(c.program);
        const json bytes = results_of(c.program + few);
        const json floats = results_of(c.program + few + " --storage float32");
        const json centred = results_of(c.program + few + " --storage int8");
        CHECK(floats["storage"] == "float32");
        CHECK(floats["data_bytes"] == 4 * 700 * 784);
        CHECK(centred["data_bytes"] == 700 * 784);
        CHECK(losses_of(bytes) == losses_of(floats));
        CHECK(losses_of(bytes) == losses_of(centred));
        // The images are all that grows: nothing wide is made of the bytes.
        const auto peak = [](const json& r) { return r["peak_bytes"].get<std::int64_t>(); };
        CHECK(peak(floats) - peak(bytes) == 3 * 700 * 784);
        CHECK(peak(bytes) == peak(centred));
    }
}

TEST_CASE("a run repeats to the bit, another seed does not") {
    const auto first = losses_of(results_of("mnist_cnn" + few)),
               second = losses_of(results_of("mnist_cnn" + few));
    CHECK(first == second);
    CHECK(losses_of(results_of("mnist_cnn --limit 700 --epochs 2 --batch 128 --seed 4")) != first);
}

TEST_CASE("the Keras network trains with dropout") {
    const json r = results_of("mnist_cnn --net keras --limit 500 --epochs 2 --batch 64");
    const auto losses = losses_of(r);
    CHECK(losses[4] < losses[0]);
}

TEST_CASE("all images as bytes take a quarter of their float32 bytes") {
    CHECK(results_of("logistic_regression --epochs 0")["data_bytes"] == 47'040'000);
    CHECK(results_of("logistic_regression --epochs 0 --storage float32")["data_bytes"] == 188'160'000);
}

TEST_CASE("images of few bits take their share of the bytes, and networks learn from them") {
    for (const auto& [storage, bytes] :
         {std::pair("uint4", 23'520'000), std::pair("uint2", 11'760'000), std::pair("uint1", 5'880'000)}) {
        INFO(storage);
        const std::string option = std::string(" --storage ") + storage;
        CHECK(results_of("logistic_regression --epochs 0" + option)["data_bytes"] == bytes);
        for (const char* program : {"mlp", "mnist_cnn"}) {
            const json r = results_of(program + few + option);
            CHECK(r["storage"] == storage);
            CHECK(r["data_bytes"] == bytes / 60'000 * 700);
            const std::vector<double> losses = losses_of(r);
            CHECK(losses[4] < losses[0]);
            CHECK(losses[7] < 0.5);
        }
    }
}

TEST_CASE("parameters are saved and loaded") {
    const std::string first = temporary_file("first.npz"), second = temporary_file("second.npz");
    results_of("mlp --limit 300 --epochs 1 --save " + first);
    results_of("mlp --limit 300 --epochs 0 --seed 9 --load " + first + " --save " + second);
    const auto saved = load_npz(first), again = load_npz(second);
    REQUIRE(saved.size() == 4);
    REQUIRE(again.size() == 4);
    for (const auto& [name, value] : saved) CHECK(same(value, again.at(name)));
    CHECK(saved.at("w1").shape() == Dims{784, 500});

    const Finished wrong = run_program("logistic_regression --limit 300 --load " + first);
    CHECK(wrong.status == 1);
    CHECK_THAT(wrong.output, ContainsSubstring("missing in the file: \"w\", float32 [784, 10]"));
}

TEST_CASE("a training goes on from its checkpoint with the bits of one that was not stopped") {
    const std::string path = temporary_file("run.safetensors");
    const std::string net = "mnist_cnn --net keras --limit 200 --batch 64 --quiet";
    const auto whole = losses_of(results_of(net + " --epochs 2"));
    results_of(net + " --epochs 1 --checkpoint " + path);
    const json rest = results_of(net + " --epochs 2 --checkpoint " + path);
    REQUIRE(rest["epochs"].size() == 1);
    CHECK(rest["epochs"][0]["epoch"] == 2);
    CHECK(losses_of(rest) == std::vector<double>(whole.begin() + 4, whole.end()));
}

TEST_CASE("files that cannot be written are said before the training") {
    for (const char* option :
         {"--save /no/such.npz", "--json /no/such.json", "--checkpoint /no/such.npz", "--save model.bin"}) {
        INFO(option);
        const Finished f = run_program(std::string("mlp --limit 100 --epochs 1000000 ") + option);
        CHECK(f.status == 1);
        CHECK_THAT(f.output, ContainsSubstring(option[2] == 's' && option[7] == 'm' ? ".npz or .safetensors"
                                                                                    : "No such file"));
    }
}

TEST_CASE("a table is printed, without a bar where there is no terminal") {
    const Finished f = run_program("logistic_regression --limit 500 --epochs 2");
    CHECK(f.status == 0);
    CHECK_THAT(f.output, ContainsSubstring("[784, 10]"));
    CHECK_THAT(f.output, ContainsSubstring("7850"));
    CHECK_THAT(f.output, ContainsSubstring("train loss"));
    CHECK_THAT(f.output, !ContainsSubstring("\r"));
}

TEST_CASE("Ctrl-C ends after the step, with what is there") {
    const std::string path = temporary_file("interrupted.json");
    const Finished f =
        run_and_interrupt("logistic_regression --limit 3000 --epochs 1000000 --json " + path, "    2  ");
    CHECK(f.status == 130);
    CHECK_THAT(f.output, ContainsSubstring("stopped by Ctrl-C"));
    const json r = json::parse(std::ifstream(path));
    CHECK(r["epochs"].size() >= 2);
    CHECK(r["epochs"].size() < 1000000);
}

TEST_CASE("SIGTERM ends after the step, as Ctrl-C does") {
    const std::string path = temporary_file("terminated.npz");
    const Finished f = run_and_interrupt("logistic_regression --limit 3000 --epochs 1000000 --save " + path,
                                         "    2  ", SIGTERM);
    CHECK(f.status == 143);
    CHECK_THAT(f.output, ContainsSubstring("stopped by SIGTERM"));
    CHECK(load_npz(path).size() == 2);
}

TEST_CASE("the help names --profile and BITALE_FLAGS, whose value does not matter for it") {
    const test::ScopedVariable wrong("BITALE_FLAGS", "nonsense=1");
    const Finished help = run_program("mlp --help");  // asks the library for nothing
    CHECK(help.status == 0);
    CHECK_THAT(help.output, ContainsSubstring("--profile") && ContainsSubstring("BITALE_FLAGS"));
}

TEST_CASE("a profile ends with the measured report of a step") {
    const Finished f = run_program("mnist_cnn --limit 300 --epochs 1 --profile");
    INFO(f.output);
    REQUIRE(f.status == 0);
    CHECK_THAT(f.output, ContainsSubstring("Function mnist_cnn_step") &&
                             ContainsSubstring("by the profile of 3 calls") &&
                             ContainsSubstring("mnist_cnn.cpp:"));
}

TEST_CASE("wrong options and files end with one message") {
    const Finished option = run_program("mlp --storage int4");
    CHECK(option.status != 0);
    CHECK_THAT(option.output, ContainsSubstring("int4"));
    const Finished misspelt = run_program("mlp --epoch 3 --quite");
    CHECK(misspelt.status != 0);
    CHECK_THAT(misspelt.output, ContainsSubstring("Did you mean --epochs instead of --epoch?") &&
                                    ContainsSubstring("Did you mean --quiet instead of --quite?"));
    CHECK(run_program("mlp --epochs 3 --epochs 0 --limit 20 --quiet").status == 0);  // the last one counts
    const Finished data = run_program("mlp --data /nowhere");
    CHECK(data.status == 1);
    CHECK_THAT(data.output, ContainsSubstring("/nowhere/train-images-idx3-ubyte"));
    const Finished device = run_program("mlp --limit 100 --device abacus");
    CHECK(device.status == 1);
    CHECK_THAT(device.output, ContainsSubstring("abacus"));
}

TEST_CASE("a second process compiles nothing") {
    const test::ScopedVariable flags("BITALE_FLAGS", "cache_dir=" + temporary_file("cache")),
        debug("BITALE_DEBUG", "1");
    const std::string first = run_program("mnist_cnn --limit 200 --epochs 0").output,
                      second = run_program("mnist_cnn --limit 200 --epochs 0").output;
    for (const char* name : {"mnist_cnn_step: ", "mnist_cnn_test: "}) {
        const auto line_of = [&](const std::string& output) {
            const std::size_t at = output.find(name);
            REQUIRE(at != std::string::npos);
            return output.substr(at, output.find('\n', at) - at);
        };
        CHECK_THAT(line_of(first),
                   ContainsSubstring(" 0 from memory, 0 from disk") && !ContainsSubstring(" 0 compiled"));
        CHECK_THAT(line_of(second), ContainsSubstring(" 0 from memory") && ContainsSubstring(" 0 compiled") &&
                                        !ContainsSubstring(" 0 from disk"));
    }
}

TEST_CASE("--dump writes the generated kernels") {
    const std::string folder = temporary_file("dump");
    CHECK(run_program("logistic_regression --limit 100 --epochs 1 --quiet --dump " + folder).status == 0);
    CHECK(!std::filesystem::is_empty(folder));
}

// The epoch that was begun is lost, and nothing else.
TEST_CASE("a program that is killed goes on, to the same file at the end", "[slow]") {
    const std::string whole = temporary_file("whole.safetensors"),
                      killed = temporary_file("killed.safetensors");
    const test::ScopedVariable folder("BITALE_DATA", Settings::mnist_folder());
    CHECK(run_program("mnist_best " + whole + " 2").status == 0);
    CHECK(run_and_interrupt("mnist_best " + killed + " 2", "% right\n  100 of 600", SIGKILL).status ==
          128 + SIGKILL);
    const Finished rest = run_program("mnist_best " + killed + " 2");
    CHECK(rest.status == 0);
    CHECK(rest.output.find("epoch 1:") == std::string::npos);
    CHECK(test::text_of_file(whole) == test::text_of_file(killed));
}

}  // namespace
}  // namespace bitale
