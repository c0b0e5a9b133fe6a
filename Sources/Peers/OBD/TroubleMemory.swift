// The fault memory of an emission-related ECU: trouble codes, freeze frame and readiness monitors, and the effect of clearing.
// Source: SAE J1979 services 01 (PID 01), 03, 04, 07 and 0A; SAE J2012 codes in two bytes.

/// The fault memory of one ECU.
struct TroubleMemory: Sendable, Equatable {
  /// The stored codes: 0133 is P0133.
  private(set) var codes: [UInt16]
  /// The pending codes.
  private(set) var pending: [UInt16]
  /// The permanent codes.
  let permanent: [UInt16]
  /// The code that caused the freeze frame to be stored.
  private(set) var freezeFrameCode: UInt16?
  /// When the codes were last cleared: the time in s and the distance in km since the start.
  private(set) var cleared: (seconds: Double, distance: Double)?

  static func == (lhs: TroubleMemory, rhs: TroubleMemory) -> Bool {
    lhs.codes == rhs.codes && lhs.pending == rhs.pending && lhs.cleared?.seconds == rhs.cleared?.seconds
  }

  init(codes: [UInt16], pending: [UInt16] = [], permanent: [UInt16] = [], freezeFrameCode: UInt16? = nil) {
    (self.codes, self.pending, self.permanent, self.freezeFrameCode) = (codes, pending, permanent, freezeFrameCode)
  }

  /// Clears codes and freeze frame. Permanent codes stay, because only the ECU can clear them.
  mutating func clear(_ seconds: Double, _ distance: Double) {
    (codes, pending, freezeFrameCode, cleared) = ([], [], nil, (seconds, distance))
  }

  /// Returns the four bytes of PID 01: the MIL and the number of codes · the supported and the incomplete continuous monitors (misfire,
  /// fuel system, components) · the other supported monitors (catalyst, EVAP, O2 sensor and its heater) · those that are incomplete.
  /// Driving completes the monitors.
  func readiness(_ secondsSinceCleared: Double) -> [UInt8] {
    let wereCleared = cleared != nil
    return [
      (codes.isEmpty ? 0 : 0x80) | UInt8(min(codes.count, 0x7F)), wereCleared && secondsSinceCleared < 60 ? 0x77 : 0x07, 0x65,
      wereCleared ? (secondsSinceCleared < 300 ? 0x65 : secondsSinceCleared < 900 ? 0x05 : 0x04) : 0x00,
    ]
  }

  /// The codes of a service: 03 stored, 07 pending, 0A permanent.
  func codes(of service: UInt8) -> [UInt16] { service == 0x07 ? pending : service == 0x0A ? permanent : codes }
}
