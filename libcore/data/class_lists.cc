// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/class_lists.h"

namespace pd {

std::vector<std::string> FashionMnistClasses() {
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

std::vector<std::string> Cifar10Classes() {
  return {"airplane", "automobile", "bird",  "cat",  "deer",
          "dog",      "frog",       "horse", "ship", "truck"};
}

std::vector<std::string> Cifar100Classes() {
  return {
      "apple",    "aquarium_fish", "baby",       "bear",         "beaver",
      "bed",      "bee",           "beetle",     "bicycle",      "bottle",
      "bowl",     "boy",           "bridge",     "bus",          "butterfly",
      "camel",    "can",           "castle",     "caterpillar",  "cattle",
      "chair",    "chimpanzee",    "clock",      "cloud",        "cockroach",
      "couch",    "crab",          "crocodile",  "cup",          "dinosaur",
      "dolphin",  "elephant",      "flatfish",   "forest",       "fox",
      "girl",     "hamster",       "house",      "kangaroo",     "keyboard",
      "lamp",     "lawn_mower",    "leopard",    "lion",         "lizard",
      "lobster",  "man",           "maple_tree", "motorcycle",   "mountain",
      "mouse",    "mushroom",      "oak_tree",   "orange",       "orchid",
      "otter",    "palm_tree",     "pear",       "pickup_truck", "pine_tree",
      "plain",    "plate",         "poppy",      "porcupine",    "possum",
      "rabbit",   "raccoon",       "ray",        "road",         "rocket",
      "rose",     "sea",           "seal",       "shark",        "shrew",
      "skunk",    "skyscraper",    "snail",      "snake",        "spider",
      "squirrel", "streetcar",     "sunflower",  "sweet_pepper", "table",
      "tank",     "telephone",     "television", "tiger",        "tractor",
      "train",    "trout",         "tulip",      "turtle",       "wardrobe",
      "whale",    "willow_tree",   "wolf",       "woman",        "worm"};
}

std::vector<std::string> VocClasses() {
  return {"background", "aeroplane",   "bicycle", "bird",  "boat",
          "bottle",     "bus",         "car",     "cat",   "chair",
          "cow",        "diningtable", "dog",     "horse", "motorbike",
          "person",     "pottedplant", "sheep",   "sofa",  "train",
          "tvmonitor"};
}

}  // namespace pd
