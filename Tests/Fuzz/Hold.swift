// What holds for every machine, whatever it hears. Part of each fuzzer that rides one.

func hold(_ condition: Bool, _ words: @autoclosure () -> String) {
  if !condition { fatalError(words()) }
}

extension Machine {
  /// It says nothing of a property that it did not declare so; texts have at most so many bytes.
  func check(_ reading: Reading, longest: Int) {
    hold(schema.properties.indices.contains(reading.property), "a reading of no property")
    guard case .value(let value) = reading.content else { return }
    let property = schema.properties[reading.property]
    hold(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
    if case .string(let text) = value { hold(text.utf8.count <= longest, "\(property.name) is too long") }
  }

  /// One that wants to be woken in the past is content after a few wakes.
  func checkWake(at now: Instant) {
    guard var due = nextWake, due <= now else { return }
    var copy = self
    var effects = Effects()
    for _ in 0..<8 {
      copy.handle(.wake, at: now, &effects)
      guard let next = copy.nextWake, next <= now else { return }
      due = next
    }
    fatalError("nextWake stays at \(due), \(now &- due) ns ago")
  }
}
