// SPDX-License-Identifier: Apache-2.0
// The opcodes of Python's pickle that values are made of, with its names.
#ifndef PD_FORMATS_PICKLE_OPCODES_H_
#define PD_FORMATS_PICKLE_OPCODES_H_

#include <cstdint>

namespace pd::pickle {

enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kProto = 0x80,
  kFrame = 0x95,

  kInt = 'I',
  kLong = 'L',
  kFloat = 'F',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kLong1 = 0x8a,
  kLong4 = 0x8b,

  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,

  kEmptyList = ']',
  kList = 'l',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kDict = 'd',
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',

  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kGet = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',

  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObject = 0x81,
  kBuild = 'b',
  kBinPersId = 'Q',
};

inline bool IsNumberOpcode(uint8_t op) {
  return op == kBinInt || op == kBinInt1 || op == kBinInt2 || op == kBinFloat ||
         op == kLong1 || op == kLong4;
}

inline bool IsStringOpcode(uint8_t op) {
  return op == kString || op == kBinString || op == kShortBinString ||
         op == kUnicode || op == kBinUnicode || op == kShortBinUnicode ||
         op == kBinUnicode8 || op == kBinBytes || op == kShortBinBytes ||
         op == kBinBytes8 || op == kByteArray8;
}

inline bool IsContainerOpcode(uint8_t op) {
  return op == kEmptyList || op == kList || op == kEmptyTuple || op == kTuple ||
         op == kTuple1 || op == kTuple2 || op == kTuple3 || op == kEmptyDict ||
         op == kDict;
}

inline bool IsFillOpcode(uint8_t op) {
  return op == kAppend || op == kAppends || op == kSetItem || op == kSetItems;
}

inline bool IsMemoOpcode(uint8_t op) {
  return op == kPut || op == kBinPut || op == kLongBinPut || op == kMemoize ||
         op == kGet || op == kBinGet || op == kLongBinGet;
}

}  // namespace pd::pickle

#endif  // PD_FORMATS_PICKLE_OPCODES_H_
