// history: commands that export, import and maintain what the history service has recorded. Without a subcommand, shows its status.

import ArgumentParser

struct HistoryCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "Export, import and maintain recorded values.",
    discussion: "Without a subcommand, show whether values are recorded, and how much.",
    subcommands: [
      HistoryStatusCommand.self, HistorySeriesCommand.self, HistoryExportCommand.self, HistoryImportCommand.self, HistoryCheckCommand.self,
      HistoryCompactCommand.self, HistoryRecutCommand.self, HistoryDeleteCommand.self,
    ])

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions

  func perform(_ output: Output) throws { try HistoryStatusCommand.show(history, common, output) }
}
