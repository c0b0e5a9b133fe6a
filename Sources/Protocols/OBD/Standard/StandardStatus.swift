// The values of PIDs that no formula can decode: the code of the freeze frame, and the oxygen sensors present (SAE J1979, PIDs 02, 13 and
// 1D).

extension StandardParameter {
  /// The code of the freeze frame; 0000 means that there is no freeze frame.
  @Sendable static func freezeFrameCode(_ data: DataRow.Data) -> Decoded {
    guard data.count >= 2 else { return .absent(.notReported) }
    let code = TroubleCode(data[0], data[1])
    return code.isPadding ? .absent(.notAvailable) : .value(.string(code.text))
  }

  @Sendable static func sensorsInTwoBanks(_ data: DataRow.Data) -> Decoded { sensors(data, [1, 1, 1, 1, 2, 2, 2, 2]) }
  @Sendable static func sensorsInFourBanks(_ data: DataRow.Data) -> Decoded { sensors(data, [1, 1, 2, 2, 3, 3, 4, 4]) }

  /// The sensors whose bits in the first byte are set; `banks` contains the bank of each bit.
  private static func sensors(_ data: DataRow.Data, _ banks: [Int]) -> Decoded {
    guard let bits = data.first else { return .absent(.notReported) }
    let names = banks.enumerated().map { bit, bank in "bank \(bank) sensor \(1 + banks[..<bit].count { $0 == bank })" }
    return .value(.list(names.enumerated().filter { bits >> $0.offset & 1 == 1 }.map(\.element)))
  }
}
