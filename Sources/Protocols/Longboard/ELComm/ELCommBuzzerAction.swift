// The buzzer action of a board. A buzzer command completes when the board has confirmed it, and fails when the link is lost.

extension ELCommBuzzer {
  static let action = Action(
    "buzz",
    arguments: [
      Argument("duration", .string, optional: true, help: "Duration, such as 2s, 500ms or 1.5 (in s); default: 1 s; maximum: buzzer-limit"),
      Argument("hold", .bool, optional: true, help: "Sound the buzzer until the client disconnects, as with vehiclectl do --hold"),
    ], streams: true, help: "Sound the buzzer for a limited time")

  /// Parses the arguments of the action.
  func request(_ arguments: [String: Value]) throws(CommandError) -> Request {
    let holds = arguments["hold"] == .bool(true)
    guard case .string(let text)? = arguments["duration"] else { return holds ? .hold : .sound(.second) }
    if holds { throw .invalid(argument: "hold", "cannot be combined with duration; give only one of them") }
    let limit = Double(limit) / 1e9
    guard let seconds = Self.seconds(text), seconds > 0 else {
      throw .invalid(argument: "duration", "\"\(text.prefix(20))\" is not a duration; use 2s, 500ms or 1.5")
    }
    guard seconds <= limit else {
      throw .invalid(argument: "duration", "\(text.prefix(20)) is longer than buzzer-limit, which is \(Value.text(limit)) s")
    }
    return .sound(max(1, Nanoseconds(seconds * 1e9)))
  }

  /// Parses `2s`, `500ms`, `1.5`.
  private static func seconds(_ text: String) -> Double? {
    let (unit, scale) = text.hasSuffix("ms") ? (2, 1000.0) : text.hasSuffix("s") ? (1, 1) : (0, 1)
    let digits = text.dropLast(unit)
    guard digits.utf8.count <= 12, digits.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }), let number = Double(digits) else {
      return nil
    }
    return number / scale
  }
}
