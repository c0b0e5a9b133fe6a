// Invariants of all machines and values, whatever input they get. Part of each fuzzer that is written in Swift.

/// Ends the process with a message if a condition does not hold. An optimised build of `precondition` would not print the message.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
  if !condition { fatalError(message()) }
}

extension Property {
  /// Requires that the property can have this value.
  func check(_ value: Value) {
    require(value.type == type && (try? rule.accept(value)) == value, "\(name) cannot be \(value.text)")
  }
}

extension Machine {
  /// Handles one input. Requires that the readings match the schema and that the machine does not stay due.
  mutating func handleAndCheck(_ input: Input, at now: Instant, maxStringLength: Int, _ effects: inout Effects) {
    effects.removeAll()
    handle(input, at: now, &effects)
    for reading in effects.readings { check(reading, maxStringLength: maxStringLength) }
    checkWake(at: now)
  }

  /// Requires that the schema declares the reading, and that a string has at most `maxStringLength` bytes.
  private func check(_ reading: Reading, maxStringLength: Int) {
    require(schema.properties.indices.contains(reading.property), "the schema does not declare property \(reading.property)")
    guard case .value(let value) = reading.content else { return }
    let property = schema.properties[reading.property]
    property.check(value)
    if case .string(let text) = value { require(text.utf8.count <= maxStringLength, "the string of \(property.name) is too long") }
  }

  /// Requires that a machine which is due needs only a few wakes: otherwise the event loop would spin.
  private func checkWake(at now: Instant) {
    guard var due = nextWake, due <= now else { return }
    var copy = self
    var effects = Effects()
    for _ in 0..<8 {
      copy.handle(.wake, at: now, &effects)
      guard let next = copy.nextWake, next <= now else { return }
      due = next
    }
    fatalError("nextWake stays at \(due), \(now &- due) ns in the past")
  }
}
