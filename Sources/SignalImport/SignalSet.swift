// Imports OBDb's signal sets (https://github.com/OBDb, signalsets/v3): commands with header, request and period, and the signals of each
// response as bit fields. The input is untrusted. Commands that require a diagnostic session are skipped.

import Protocols

enum SignalSet {
  /// Imports the signals of one model year, or of all model years if `year` is nil.
  static func read(_ text: [UInt8], year: Int?, into result: inout ImportedSignals) throws(ValueError) {
    guard let root = JSONNode(untrusted: text) else { throw ValueError("invalid JSON; download the file again") }
    guard let commands = root["commands"], commands.kind == .array else {
      throw ValueError("not an OBDb signal set: no list \"commands\"; use one, such as signalsets/v3/default.json of a car")
    }
    if let session = root["diagnosticLevel"]?.text {
      result.note("diagnosticLevel", "the signal set needs diagnostic session \(visible(session, limit: 8)), which vehicled never opens")
    }
    if let synthetics = root["synthetics"] {
      for synthetic in synthetics.elements { result.skip(synthetic.label("id"), "computed from other signals") }
    }
    if commands.elements.isEmpty { result.skip("commands", "the list is empty: the signal set describes nothing yet") }
    for (index, command) in commands.elements.enumerated() { read(command, number: index + 1, year, into: &result) }
    if year == nil, result.signals.contains(where: \.hasModelYears) {
      result.note("filter", "some signals are only for certain model years; use --year YEAR to select one")
    }
  }

  private static func read(_ command: JSONNode, number: Int, _ year: Int?, into result: inout ImportedSignals) {
    let signals = command["signals"]?.elements ?? []
    let template: ImportedSignal
    do throws(ValueError) {
      template = try self.template(of: command, year)
    } catch {
      let message = request(of: command).map { "request \($0): \(error.description)" } ?? error.description
      if signals.isEmpty { return result.skip("command \(number)", message) }
      for signal in signals { result.skip(signal.label("id"), message) }
      return
    }
    if signals.isEmpty { result.skip("command \(number)", "no signals") }
    for signal in signals {
      let place = signal.label("id")
      do throws(ValueError) {
        guard let id = signal["id"]?.text else { throw ValueError("no id") }
        let field = try SignalField(signal)
        var imported = try field.signal(template)
        imported.help = visible(
          [signal["name"]?.text ?? id, imported.help ?? ""].filter { !$0.isEmpty }.joined(separator: ": "), limit: 200)
        result.add(imported, id: id, place: place)
        for message in field.remarks(on: imported) { result.note(place, message) }
      } catch {
        result.skip(place, error.description)
      }
    }
  }

  /// A description of a command for messages, such as `22DDBC to 6F1`.
  private static func request(of command: JSONNode) -> String? {
    guard command.kind == .object, let services = command["cmd"], services.kind == .object, let service = services.keys.first,
      let parameter = services[service]?.text
    else { return nil }
    let request = visible(service + parameter, limit: 20)
    return command["hdr"]?.text.map { "\(request) to \(visible($0, limit: 20))" } ?? request
  }

  /// Returns a signal with only the keys that all signals of a command share.
  private static func template(of command: JSONNode, _ year: Int?) throws(ValueError) -> ImportedSignal {
    guard command.kind == .object else { throw ValueError("not a command") }
    let years = ModelYears(command["filter"])
    if let year, let years, !years.contains(year) { throw ValueError("only for model years \(years.text), not \(year)") }
    guard command["din"] == nil else { throw ValueError("needs a diagnostic session, which vehicled never opens") }
    if let kind = command["proto"]?.text, kind.hasPrefix("9141") { throw ValueError("for ISO 9141, which has no CAN identifiers") }
    guard let services = command["cmd"], services.kind == .object, let service = services.keys.first, services.keys.count == 1,
      let parameter = services[service]?.text
    else { throw ValueError("unknown request: cmd must give a service and an identifier") }
    let header = try header(of: command)
    var template = ImportedSignal(request: service + parameter, header: header.text, value: "")
    if let reply = try reply(of: command, to: header), reply != header.reply { template.reply = reply.text }
    if let address = command["eax"] {
      template.extendedAddress = try addressByte(address, "extended address", "eax")
      // With 11 bits, the tester address is the first byte of received frames.
      template.testerAddress = try command["tst"].map { value throws(ValueError) in try addressByte(value, "tester address", "tst") }
    }
    if let seconds = command["freq"]?.float, seconds > 0 { template.period = min(max(seconds, 0.05), 3600) }
    if let years {
      template.hasModelYears = true
      template.comments.append("for model years \(years.text)")
    }
    return template
  }

  /// Parses a header: an 11-bit identifier such as `7E4`, or the two middle bytes of a 29-bit identifier, such as `DA10` or `DB33`.
  private static func header(of command: JSONNode) throws(ValueError) -> CANIdentifier {
    guard let digits = command["hdr"]?.text else { throw ValueError("no header") }
    let tester = command["tst"]?.text ?? "F1"
    let whole = digits.utf8.count == 4 ? (command["pri"]?.text ?? "18") + digits + tester : digits
    guard let header = CANIdentifier(whole) else { throw ValueError("header \(visible(digits, limit: 20)) is not a CAN identifier") }
    return header
  }

  private static func addressByte(_ value: JSONNode, _ name: String, _ key: String) throws(ValueError) -> String {
    guard let text = value.text, text.utf8.count == 2, text.allSatisfy(\.isHexDigit) else {
      throw ValueError("\(name) \(visible(value.text ?? "?", limit: 8)) (\(key)) is not a byte of two hex digits")
    }
    return text.uppercased()
  }

  /// The response identifier, formed as in OBDb's decoder. With 11 bits, it is the address itself. With 29 bits, the address has all eight
  /// digits, or the six after the command's priority, or is only the address of the ECU, which responds to tester F1.
  private static func reply(of command: JSONNode, to header: CANIdentifier) throws(ValueError) -> CANIdentifier? {
    guard let digits = command["rax"]?.text else { return nil }
    let priority = String(header.text.prefix(2))
    let whole =
      switch (header.is29Bit, digits.utf8.count) {
      case (true, 2): priority + "DAF1" + digits
      case (true, 6): priority + digits
      default: digits
      }
    guard let reply = CANIdentifier(whole), reply.is29Bit == header.is29Bit else {
      throw ValueError("receive address \(visible(digits, limit: 20)) (rax) is not a CAN identifier")
    }
    return reply
  }
}

extension JSONNode {
  /// The text of a member for messages, or a placeholder.
  fileprivate func label(_ key: String) -> String {
    let text = visible(kind == .object ? self[key]?.text ?? "" : "", limit: 80)
    return text.isEmpty ? "a signal without \(key)" : text
  }
}
