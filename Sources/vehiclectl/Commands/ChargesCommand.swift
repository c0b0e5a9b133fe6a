// charges: lists the recorded charging sessions, newest first.

import ArgumentParser

struct ChargesCommand: PeriodListCommand {
  static let kind = PeriodTable.Kind.charge
  static let configuration = CommandConfiguration(
    commandName: "charges", abstract: "List charging sessions, newest first.",
    discussion: """
      Times are in the time zone in which the charging session started. The notes are explained below the list. With --json: \
      {"periods":[…]} in the units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @OptionGroup var list: PeriodListOptions
}
