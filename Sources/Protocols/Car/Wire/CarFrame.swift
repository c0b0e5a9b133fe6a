// The messages to the car, in both dialects. Each frame is one write and shorter than the 1024 bytes that the car reads at a time,
// because the car does not reassemble split frames.
// Source: the app's README, TCPConnection.m, TCP.py (which splits only at `%^%` CR LF).
//
//   Stop#$#%^%␍␊          type, delimiter, body (here empty), terminator; no line end in the documented dialect

/// A message to the car, other than a tilt.
enum CarOutboundMessage: Sendable, Equatable {
  case modes, mainViewEntered, status, stop, proceed, disconnect, shutDown, connectionTest
  case chosenMode(Int)
  /// Requests the description of this mode (as-built dialect), or of all modes (documented dialect).
  case infoModes(Int)
  case button(CarSide, isDown: Bool)
  case videoQuality(CarVideoQuality)
  case videoStream(Bool)
  /// Text that `CarText.refusal` has accepted.
  case message(String)

  /// The frame, for one write.
  func frame(_ dialect: CarDialect) -> [UInt8] {
    let (type, body) = parts(dialect)
    var bytes = CarFrame.opened(type)
    bytes += body.utf8
    CarFrame.close(&bytes, dialect)
    return bytes
  }

  private func parts(_ dialect: CarDialect) -> (type: String, body: String) {
    switch self {
    case .modes: ("Modes", "")
    case .mainViewEntered: ("MainView", "Entered")
    case .status: ("Status", "")
    case .stop: ("Stop", "")
    case .proceed: ("Continue", "")
    case .disconnect: ("Disconnect", "")
    case .shutDown: ("ShutDown", "")
    case .connectionTest: ("ConnectionTest", "")
    case .chosenMode(let number): ("ChosenMode", String(number))
    case .infoModes(let number): ("InfoModes", dialect == .asBuilt ? String(number) : "")
    // The app's README has a surplus n: `LeftButtonTouchDownn`.
    case .button(let side, let isDown): ("\(side.rawValue)ButtonTouch\(isDown ? "Down" : "Up")\(dialect == .documented ? "n" : "")", "")
    case .videoQuality(let quality): ("VideoQuality", quality.body)
    case .videoStream(let isOn): ("VideoStream", isOn ? "On" : "Off")
    case .message(let text): ("Message", text)
    }
  }
}

/// One half of the app's screen.
enum CarSide: String, Sendable, CaseIterable {
  case left = "Left"
  case right = "Right"
}

/// The quality of the camera's pictures: 360x240, 568x300 and 760x460.
enum CarVideoQuality: String, Sendable, CaseIterable {
  case low, medium, high

  var body: String {
    switch self {
    case .low: "Low"
    case .medium: "Medium"
    case .high: "High"
    }
  }
}

/// The delimiter and the terminator of a frame, and functions that compose a frame.
enum CarFrame {
  /// The maximum length of a frame: the car reads at most 1024 bytes at a time.
  static let maxLength = 1023
  static let delimiter = Array("#$#".utf8)
  static let terminator = Array("%^%".utf8)

  static func opened(_ type: String) -> [UInt8] { Array(type.utf8) + delimiter }

  static func close(_ bytes: inout [UInt8], _ dialect: CarDialect) {
    bytes += terminator
    if dialect == .asBuilt { bytes += [0x0D, 0x0A] }
  }
}
