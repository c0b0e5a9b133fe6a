// The commands of a board: its buzzer and its name. A buzzer command completes when the board has responded after it, and does not
// survive its link.

extension ELCommMachine {
  static let buzz = Action(
    "buzz",
    arguments: [
      Argument("duration", .string, optional: true, help: "Duration, as 2s, 500ms or 1.5 (s); default: 1 s; maximum: buzzer-limit"),
      Argument("hold", .bool, optional: true, help: "Sound until the caller disconnects: --hold"),
    ], streams: true, help: "Sound the buzzer for a limited time")

  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    switch command {
    case .set(property: ELCommSignal.name.rawValue, .string(let name)): keeping.name(name, for: id, &effects)
    case .set(property: ELCommSignal.buzzer.rawValue, .bool(let on)): sound(id, on ? .on : .off, at: now, &effects)
    case .run(action: 0, let arguments):
      do throws(CommandError) {
        sound(id, try wish(arguments), at: now, &effects)
      } catch {
        effects.append(.complete(id, .failure(error)))
      }
    default: effects.append(.complete(id, .failure(.refused(code: "unknown", "no such action"))))
    }
  }

  private mutating func sound(_ id: CommandID, _ wish: ELCommBuzzer.Order.Wish, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down(let reason): effects.append(.complete(id, .failure(.notConnected(reason))))
    case .stopping: effects.append(.complete(id, .failure(.notConnected("the link is being closed"))))
    default: buzzer.take(id, wish, at: now, &effects)
    }
  }

  private func wish(_ arguments: [String: Value]) throws(CommandError) -> ELCommBuzzer.Order.Wish {
    let holds = arguments["hold"] == .bool(true)
    guard case .string(let text)? = arguments["duration"] else { return holds ? .hold : .sound(.second) }
    if holds { throw .invalid(argument: "hold", "excludes duration; give one of them") }
    let limit = Double(settings.buzzerLimit) / 1e9
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
    guard digits.utf8.count <= 12, digits.utf8.allSatisfy({ isDigit($0) || $0 == dot }), let number = Double(digits) else { return nil }
    return number / scale
  }
}
