// A stationary car whose trouble codes are to be cleared, and the steps of a clear operation.

@testable import Protocols

extension AdapterRig {
  static let clearingRequests: [String] = ["03", "07", "0A", "020200", "0101", "010D", "010C"]
  static let clearedLine = "2024-02-29T12:34:56Z 7E8 P0133 (stored), P0420 (stored, permanent), freeze frame of P0133; 7E9 P0715 (stored)\n"

  /// A stationary car with two ECUs, being polled.
  static func stationary(stored: [String: [UInt8]] = [:]) -> AdapterRig {
    var rig = AdapterRig()
    rig.adapter.bmsReply = Vector.record(Vector.ev6, [53: 0, 54: 0])
    rig.adapter.answer("03", "7E806430201330420\r7E90443010715\r\r>")
    rig.adapter.answer("0A", "7E8044A010420\r\r>")
    rig.adapter.answer("020200", "7E8054202000133\r\r>")
    rig.adapter.answer("0101", "7E806410182076520\r7E906410101040000\r\r>")
    rig.adapter.answer("010D", "7E803410D00\r\r>")
    rig.adapter.answer("010C", "7E804410C0000\r\r>")
    rig.adapter.answer("04", "7E80144\r7E90144\r\r>")
    rig.start(restored: stored, for: 2 * .second)
    return rig
  }

  mutating func requestClearing(confirm: Bool?, id: CommandID = 1) {
    run("dtc-clear", confirm.map { ["confirm": .bool($0)] } ?? [:], id: id)
  }

  mutating func giveTime() { give(.time(WallTime(microseconds: 1_709_210_096_000_000))) }

  /// The disk has the codes, or has failed.
  mutating func codesStored(_ failure: String? = nil) { give(.stored(key: "cleared-codes", failure: failure)) }

  /// Confirmed and read; the disk has not replied yet.
  mutating func storeCodes() {
    requestClearing(confirm: true)
    run(for: .second)
    giveTime()
  }

  /// The complete sequence.
  mutating func clearCodes() {
    storeCodes()
    codesStored()
    run(for: .second)
  }

  /// Values are published at their rate again.
  mutating func keepsPolling() -> Bool {
    run(for: 2 * .second)
    let before = heard("2201019")
    run(for: .second)
    return status == "polling" && heard("2201019") >= before + 19
  }
}
