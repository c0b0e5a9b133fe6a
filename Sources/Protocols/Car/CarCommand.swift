// Checks a client's command, and passes it to motion, the settings or another feature. While the car does not respond, commands for it are
// rejected, but settings can be changed.

struct CarCommand: Sendable {
  private let id: CommandID
  private let command: Command

  init(_ id: CommandID, _ command: Command) { (self.id, self.command) = (id, command) }

  /// Performs the command. It ends in exactly one `complete`, unless its caller has disconnected.
  func perform(
    on motion: inout CarMotion, _ features: inout CarFeatures, _ context: CarContext, at now: Instant, _ effects: inout Effects
  ) {
    switch command {
    case .set(let position, let value):
      guard let property = CarProperty(rawValue: position), features.status.schema.properties[position].access == .write else {
        return effects.refuse(command: id, code: .readOnly, "the property is read-only")
      }
      if features.setSetting(property, value, for: id, isDriven: motion.driving.isRunning, &effects) { return }
      if let reason = context.session.unavailability { return effects.fail(command: id, .notConnected(reason)) }
      set(property, value, on: &motion, &features, context, at: now, &effects)
    case .run(let action, let arguments):
      guard let action = CarAction(rawValue: action) else {
        return effects.refuse(command: id, code: .notSupported, "no such action")
      }
      if action == .neutral { return features.setNeutral(arguments["position"], motion.driving, for: id, &effects) }
      // Stop is sent even if the car has not responded yet.
      if action == .stop, context.session.isUp, !context.session.isClosing { return motion.stop(for: id, context, at: now, &effects) }
      if let reason = context.session.unavailability {
        return effects.fail(command: id, .notConnected(action == .stop ? motion.standstill.refusal(reason) : reason))
      }
      run(action, arguments, on: &motion, &features, context, at: now, &effects)
    }
  }

  private func set(
    _ property: CarProperty, _ value: Value, on motion: inout CarMotion, _ features: inout CarFeatures, _ context: CarContext,
    at now: Instant, _ effects: inout Effects
  ) {
    switch (property, value) {
    case (.mode, .string(let name)):
      switch features.modes.find(name) {
      case .failure(let error): effects.fail(command: id, error)
      case .success(let number): motion.chooseMode(number, for: id, context, at: now, &effects)
      }
    case (.leftButton, .bool(let isDown)): motion.press(.left, isDown, for: id, context, &effects)
    case (.rightButton, .bool(let isDown)): motion.press(.right, isDown, for: id, context, &effects)
    default:
      let queued = features.set(
        property, value, for: id, isDriven: motion.driving.isLeaseHeld, hasRoom: motion.sender.queue.hasRoom, at: now, &effects)
      if let queued { motion.add(queued, &effects) }
    }
  }

  private func run(
    _ action: CarAction, _ arguments: [String: Value], on motion: inout CarMotion, _ features: inout CarFeatures, _ context: CarContext,
    at now: Instant, _ effects: inout Effects
  ) {
    switch action {
    case .tilt: motion.tilt(arguments, features.settings, for: id, context, at: now, &effects)
    case .proceed: motion.proceed(for: id, &effects)
    case .shutDown: motion.shutDown(for: id, context, at: now, &effects)
    default:
      let queued = features.run(action, arguments, for: id, isDriven: motion.driving.isLeaseHeld, &effects)
      if let queued { motion.add(queued, &effects) }
    }
  }
}
